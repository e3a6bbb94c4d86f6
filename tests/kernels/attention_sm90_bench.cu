// Checks and times the Hopper attention kernel on its own, with nothing of the program but the kernel:
//   nvcc -std=c++17 -O3 -I. -gencode arch=compute_90a,code=sm_90a tests/kernels/attention_sm90_bench.cu
//        kernels/attention_sm90.cu -o attention_sm90_bench
//   attention_sm90_bench [values] [splits] [time] [tiny]     (all but tiny where none is named)
// values: against float64, odd sizes and hard inputs, output buffers poisoned. splits: equal bytes for any cut of rows
// and heads and any strides. time: TFLOP/s. tiny: one small case, for compute-sanitizer. Exit code 1 after a failure,
// 77 where there is no device of compute capability 9.0.
#include <cuda_bf16.h>
#include <cuda_runtime.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "kernels/attention_sm90.h"

namespace {

using bf16 = __nv_bfloat16;
using h3::AttentionSm90Args;
using h3::AttentionSm90Strides;

constexpr int kHeadSize = 128;
const float kScale = 1.0f / std::sqrt(static_cast<float>(kHeadSize));
int failures = 0;

void must(cudaError_t error, const char* what) {
  if (error == cudaSuccess) return;
  std::fprintf(stderr, "%s: %s\n", what, cudaGetErrorString(error));
  std::exit(1);
}

void expect(bool holds, const std::string& what) {
  std::printf("%s %s\n", holds ? "ok  " : "FAIL", what.c_str());
  if (!holds) ++failures;
}

struct Buffer {
  explicit Buffer(std::size_t count) : size(count) { must(cudaMalloc(&data, count * sizeof(bf16)), "cudaMalloc"); }
  ~Buffer() { cudaFree(data); }
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;
  std::size_t size;
  bf16* data = nullptr;
};

// ---- inputs

enum class Kind { normal, large, dominating, rising, tiny };

__device__ float unit_normal(std::uint64_t seed, std::uint64_t i) {
  std::uint64_t z = (i + 1) * 0x9E3779B97F4A7C15ull + seed * 0xD1B54A32D192ED03ull;
  z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9ull;
  z = (z ^ z >> 27) * 0x94D049BB133111EBull;
  z ^= z >> 31;
  const float u = (static_cast<float>(z >> 40) + 0.5f) / 16777216.0f;
  const float a = static_cast<float>(z & 0xFFFFFF) / 16777216.0f;
  return sqrtf(-2 * logf(u)) * cospif(2 * a);
}

// A fused projection's output [rows, heads, 3, 128]; parts 0 and 1 are query and key.
__global__ void fill(bf16* x, std::int64_t rows, int heads, Kind kind, std::uint64_t seed) {
  const std::int64_t count = rows * heads * 3 * kHeadSize;
  for (std::int64_t i = blockIdx.x * std::int64_t{blockDim.x} + threadIdx.x; i < count;
       i += std::int64_t{gridDim.x} * blockDim.x) {
    const std::int64_t row = i / (heads * 3 * kHeadSize);
    const int part = static_cast<int>(i / kHeadSize % 3);
    float value = unit_normal(seed, i);
    if (kind == Kind::large && part < 2) value *= 12;
    if (kind == Kind::dominating && part == 1 && row == rows / 3) value *= 30;
    // Logits grow from the last key to the first, as the kernel walks: nearly every tile brings a new largest one.
    if (kind == Kind::rising && part < 2) {
      value = fabsf(value) * (part == 1 ? 4.0f * (rows - row) / rows : 1.0f);
    }
    if (kind == Kind::tiny) value = row % 2 == 0 ? -0.0f : value * 1e-39f;
    x[i] = __float2bfloat16(value);
  }
}

__global__ void copy_part(const bf16* fused, int part, std::int64_t rows, int heads, bf16* x, std::int64_t row_stride,
                          std::int64_t head_stride) {
  const std::int64_t row = blockIdx.x;
  for (int i = threadIdx.x; i < heads * kHeadSize; i += blockDim.x) {
    const int head = i / kHeadSize, d = i % kHeadSize;
    x[row * row_stride + head * head_stride + d] = fused[((row * heads + head) * 3 + part) * kHeadSize + d];
  }
}

// ---- reference in float64: one block a (sampled row, head)

__global__ void reference(AttentionSm90Args args, const int* rows, double* logits, double* out) {
  const int row = rows[blockIdx.x], head = blockIdx.y;
  const auto at = [&](const void* x, const AttentionSm90Strides& stride, std::int64_t r) {
    return static_cast<const bf16*>(x) + r * stride.row + head * stride.head;
  };
  double* mine = logits + (blockIdx.y * std::int64_t{gridDim.x} + blockIdx.x) * args.rows_k;
  const bf16* q = at(args.q, args.q_stride, row);
  __shared__ double shared[kHeadSize];
  double top = -INFINITY;
  for (int j = threadIdx.x; j < args.rows_k; j += blockDim.x) {
    const bf16* k = at(args.k, args.k_stride, j);
    double dot = 0;
    for (int d = 0; d < kHeadSize; ++d) dot += static_cast<double>(__bfloat162float(q[d])) * __bfloat162float(k[d]);
    mine[j] = dot * args.scale;
    top = fmax(top, mine[j]);
  }
  shared[threadIdx.x] = top;
  __syncthreads();
  for (int i = 0; i < kHeadSize; ++i) top = fmax(top, shared[i]);
  double sum = 0, value = 0;
  for (int j = 0; j < args.rows_k; ++j) {
    const double weight = exp(mine[j] - top);
    sum += weight;
    value += weight * __bfloat162float(at(args.v, args.v_stride, j)[threadIdx.x]);
  }
  out[(blockIdx.x * std::int64_t{gridDim.y} + head) * kHeadSize + threadIdx.x] = value / sum;
}

// ---- values

AttentionSm90Args fused_args(const Buffer& fused, int rows_q, int rows_k, int heads) {
  AttentionSm90Args args;
  args.q = fused.data;
  args.k = fused.data + kHeadSize;
  args.v = fused.data + 2 * kHeadSize;
  args.rows_q = rows_q;
  args.rows_k = rows_k;
  args.heads = heads;
  args.q_stride = args.k_stride = args.v_stride = {std::int64_t{heads} * 3 * kHeadSize, 3 * kHeadSize};
  args.scale = kScale;
  return args;
}

void run(const AttentionSm90Args& args) {
  must(h3::h3_attention_sm90(args, nullptr), "h3_attention_sm90");
}

std::vector<int> sampled_rows(int rows) {
  std::vector<int> sample;
  for (int i = 0; i < std::min(rows, 96); ++i) {
    sample.push_back(rows <= 96 ? i : static_cast<int>(std::int64_t{i} * 7919 % (rows - 1)));
  }
  sample.back() = rows - 1;
  return sample;
}

std::vector<double> reference_rows(const AttentionSm90Args& args, const std::vector<int>& sample) {
  const std::size_t count = sample.size() * args.heads;
  int* rows = nullptr;
  double *logits = nullptr, *out = nullptr;
  must(cudaMalloc(&rows, sample.size() * sizeof(int)), "cudaMalloc");
  must(cudaMalloc(&logits, count * args.rows_k * sizeof(double)), "cudaMalloc");
  must(cudaMalloc(&out, count * kHeadSize * sizeof(double)), "cudaMalloc");
  must(cudaMemcpy(rows, sample.data(), sample.size() * sizeof(int), cudaMemcpyHostToDevice), "cudaMemcpy");
  reference<<<dim3(sample.size(), args.heads), kHeadSize>>>(args, rows, logits, out);
  std::vector<double> values(count * kHeadSize);
  must(cudaMemcpy(values.data(), out, values.size() * sizeof(double), cudaMemcpyDeviceToHost), "reference");
  for (void* p : {static_cast<void*>(rows), static_cast<void*>(logits), static_cast<void*>(out)}) cudaFree(p);
  return values;
}

void check_values(const char* name, Kind kind, int rows_q, int rows_k, int heads) {
  const int rows = std::max(rows_q, rows_k);
  Buffer fused(std::size_t(rows) * heads * 3 * kHeadSize);
  fill<<<512, 256>>>(fused.data, rows, heads, kind, rows_q * 31 + rows_k);
  // Output [rows, heads, 136]: eight guard elements behind each head, a guard row at the end.
  constexpr int kPadded = kHeadSize + 8;
  Buffer o(std::size_t(rows_q + 1) * heads * kPadded);
  must(cudaMemset(o.data, 0xFF, o.size * sizeof(bf16)), "cudaMemset");
  AttentionSm90Args args = fused_args(fused, rows_q, rows_k, heads);
  args.o = o.data;
  args.o_stride = {std::int64_t{heads} * kPadded, kPadded};
  run(args);
  std::vector<std::uint16_t> got(o.size);
  must(cudaMemcpy(got.data(), o.data, o.size * sizeof(bf16), cudaMemcpyDeviceToHost), "attention");
  const auto value = [&](std::size_t i) {
    const std::uint32_t bits = std::uint32_t{got[i]} << 16;
    float f;
    std::memcpy(&f, &bits, sizeof f);
    return static_cast<double>(f);
  };
  bool written = true, guarded = true;
  for (std::size_t i = 0; i < got.size(); ++i) {
    const bool guard = i % kPadded >= kHeadSize || i / (std::size_t(heads) * kPadded) == std::size_t(rows_q);
    if (guard && got[i] != 0xFFFF) guarded = false;
    if (!guard && !std::isfinite(value(i))) written = false;
  }
  const std::vector<int> sample = sampled_rows(rows_q);
  const std::vector<double> want = reference_rows(args, sample);
  double difference = 0, norm = 0, largest = 0;
  for (std::size_t s = 0; s < sample.size(); ++s) {
    for (int h = 0; h < heads; ++h) {
      for (int d = 0; d < kHeadSize; ++d) {
        const double w = want[(s * heads + h) * kHeadSize + d];
        const double g = value((std::size_t(sample[s]) * heads + h) * kPadded + d);
        difference += (w - g) * (w - g);
        norm += w * w;
        largest = std::max(largest, std::abs(w - g));
      }
    }
  }
  const double relative = std::sqrt(difference / std::max(norm, 1e-300));
  // Denormal bf16 values lie 2^-133 apart.
  const bool denormal = kind == Kind::tiny;
  const double error = denormal ? std::ldexp(largest, 133) : relative;
  const bool close = error < (denormal ? 1 : 4e-3);
  char line[200];
  std::snprintf(line, sizeof line, "%-10s %6d queries %6d keys %2d heads: %s %.2e%s%s", name, rows_q, rows_k, heads,
                denormal ? "largest error in steps" : "relative error", error, written ? "" : ", not all written",
                guarded ? "" : ", written outside");
  expect(close && written && guarded, line);
}

void check_refusals() {
  Buffer x(4096);
  AttentionSm90Args good = fused_args(x, 2, 2, 2);
  good.o = x.data;
  good.o_stride = good.q_stride;
  const auto refuses = [&](const char* what, auto change) {
    AttentionSm90Args args = good;
    change(args);
    expect(h3::h3_attention_sm90(args, nullptr) == cudaErrorInvalidValue, std::string("refuses ") + what);
  };
  refuses("no keys", [](AttentionSm90Args& a) { a.rows_k = 0; });
  refuses("negative rows", [](AttentionSm90Args& a) { a.rows_q = -1; });
  refuses("null values", [](AttentionSm90Args& a) { a.v = nullptr; });
  refuses("stride 100", [](AttentionSm90Args& a) { a.k_stride.row = 100; });
  refuses("negative stride", [](AttentionSm90Args& a) { a.o_stride.head = -128; });
  refuses("misaligned queries", [](AttentionSm90Args& a) { a.q = static_cast<const char*>(a.q) + 2; });
  refuses("scale 0", [](AttentionSm90Args& a) { a.scale = 0; });
  AttentionSm90Args none = good;
  none.rows_q = 0;
  none.q = nullptr;
  expect(h3::h3_attention_sm90(none, nullptr) == cudaSuccess, "no query rows: nothing to do");
}

// ---- splits

__global__ void count_differences(const std::uint32_t* a, const std::uint32_t* b, std::size_t words,
                                  unsigned long long* differences) {
  unsigned long long mine = 0;
  for (std::size_t i = blockIdx.x * std::size_t{blockDim.x} + threadIdx.x; i < words;
       i += std::size_t{gridDim.x} * blockDim.x) {
    mine += a[i] != b[i];
  }
  if (mine > 0) atomicAdd(differences, mine);
}

bool equal_bytes(const Buffer& a, const Buffer& b) {
  unsigned long long *differences = nullptr, found = 0;
  must(cudaMalloc(&differences, sizeof found), "cudaMalloc");
  must(cudaMemset(differences, 0, sizeof found), "cudaMemset");
  count_differences<<<512, 256>>>(reinterpret_cast<const std::uint32_t*>(a.data),
                                  reinterpret_cast<const std::uint32_t*>(b.data), a.size / 2, differences);
  must(cudaMemcpy(&found, differences, sizeof found, cudaMemcpyDeviceToHost), "count_differences");
  cudaFree(differences);
  return found == 0;
}

AttentionSm90Args part_of(AttentionSm90Args args, int row, int rows, int head, int heads) {
  const auto move = [&](const void* x, const AttentionSm90Strides& stride, int r) {
    return static_cast<const bf16*>(x) + r * stride.row + head * stride.head;
  };
  args.q = move(args.q, args.q_stride, row);
  args.k = move(args.k, args.k_stride, 0);
  args.v = move(args.v, args.v_stride, 0);
  args.o = const_cast<bf16*>(move(args.o, args.o_stride, row));
  args.rows_q = rows;
  args.heads = heads;
  return args;
}

void run_in_parts(const AttentionSm90Args& args, const std::vector<int>& row_cuts, const std::vector<int>& head_cuts) {
  for (std::size_t r = 0; r + 1 < row_cuts.size(); ++r) {
    for (std::size_t h = 0; h + 1 < head_cuts.size(); ++h) {
      run(part_of(args, row_cuts[r], row_cuts[r + 1] - row_cuts[r], head_cuts[h], head_cuts[h + 1] - head_cuts[h]));
    }
  }
}

void check_splits(Kind kind, int rows, int heads, const std::vector<int>& row_cuts, const std::vector<int>& head_cuts) {
  const std::string name = std::to_string(rows) + " rows, " + std::to_string(heads) + " heads: equal bytes for ";
  Buffer fused(std::size_t(rows) * heads * 3 * kHeadSize);
  fill<<<512, 256>>>(fused.data, rows, heads, kind, 5);
  const std::size_t count = std::size_t(rows) * heads * kHeadSize;
  Buffer whole(count), parts(count);
  AttentionSm90Args args = fused_args(fused, rows, rows, heads);
  args.o_stride = {std::int64_t{heads} * kHeadSize, kHeadSize};
  args.o = whole.data;
  run(args);
  const auto poison = [&] { must(cudaMemset(parts.data, 0xFF, count * sizeof(bf16)), "cudaMemset"); };
  args.o = parts.data;
  poison();
  run(args);
  expect(equal_bytes(whole, parts), name + "a second run");
  poison();
  run_in_parts(args, row_cuts, head_cuts);
  expect(equal_bytes(whole, parts), name + "row ranges of head ranges");
  // Keys head by head with a gap, values packed by rows, queries with padded rows.
  const std::int64_t gap = std::int64_t{rows} * kHeadSize + 24, padded = std::int64_t{heads} * kHeadSize + 40;
  Buffer q(rows * padded), k(heads * gap), v(count);
  copy_part<<<rows, 256>>>(fused.data, 0, rows, heads, q.data, padded, kHeadSize);
  copy_part<<<rows, 256>>>(fused.data, 1, rows, heads, k.data, kHeadSize, gap);
  copy_part<<<rows, 256>>>(fused.data, 2, rows, heads, v.data, heads * kHeadSize, kHeadSize);
  args.q = q.data;
  args.q_stride = {padded, kHeadSize};
  args.k = k.data;
  args.k_stride = {kHeadSize, gap};
  args.v = v.data;
  args.v_stride = {heads * kHeadSize, kHeadSize};
  poison();
  run_in_parts(args, row_cuts, {0, heads});
  expect(equal_bytes(whole, parts), name + "other strides");
}

// ---- time

void measure(int rows, int heads) {
  Buffer fused(std::size_t(rows) * heads * 3 * kHeadSize), o(std::size_t(rows) * heads * kHeadSize);
  fill<<<512, 256>>>(fused.data, rows, heads, Kind::normal, 1);
  AttentionSm90Args args = fused_args(fused, rows, rows, heads);
  args.o = o.data;
  args.o_stride = {std::int64_t{heads} * kHeadSize, kHeadSize};
  constexpr int kWarmUp = 3, kRuns = 8;
  cudaEvent_t marks[kRuns + 1];
  for (cudaEvent_t& mark : marks) must(cudaEventCreate(&mark), "cudaEventCreate");
  for (int i = 0; i < kWarmUp; ++i) run(args);
  must(cudaEventRecord(marks[0]), "cudaEventRecord");
  for (int i = 0; i < kRuns; ++i) {
    run(args);
    must(cudaEventRecord(marks[i + 1]), "cudaEventRecord");
  }
  must(cudaDeviceSynchronize(), "attention");
  std::vector<double> rates;
  for (int i = 0; i < kRuns; ++i) {
    float ms = 0;
    must(cudaEventElapsedTime(&ms, marks[i], marks[i + 1]), "cudaEventElapsedTime");
    rates.push_back(4.0 * rows * rows * heads * kHeadSize / ms / 1e9);
  }
  for (cudaEvent_t mark : marks) cudaEventDestroy(mark);
  std::sort(rates.begin(), rates.end());
  std::printf("%6d rows %2d heads, fused strides: %.1f TFLOP/s (%.1f to %.1f)\n", rows, heads, rates[kRuns / 2],
              rates[0], rates[kRuns - 1]);
}

}  // namespace

int main(int argc, char** argv) {
  const auto asked = [&](const char* what, bool by_default = true) {
    for (int i = 1; i < argc; ++i) {
      if (std::strcmp(argv[i], what) == 0) return true;
    }
    return argc == 1 && by_default;
  };
  int major = 0, minor = 0;
  if (cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, 0) != cudaSuccess ||
      cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, 0) != cudaSuccess || major != 9 || minor != 0) {
    std::printf("skipped: no device of compute capability 9.0\n");
    return 77;
  }
  cudaFuncAttributes attributes{};
  must(h3::h3_attention_sm90_attributes(&attributes), "h3_attention_sm90_attributes");
  std::printf("registers at launch %d, spilled bytes %zu\n", attributes.numRegs, attributes.localSizeBytes);
  if (asked("tiny", false)) check_values("normal", Kind::normal, 400, 250, 2);
  if (asked("values")) {
    for (int rows : {1, 127, 128, 129, 191, 192, 193, 385, 1000}) check_values("normal", Kind::normal, rows, rows, 2);
    for (int keys : {1, 2, 79, 80, 81, 160, 161, 999}) check_values("normal", Kind::normal, 65, keys, 3);
    check_values("normal", Kind::normal, 1, 3001, 5);
    check_values("normal", Kind::normal, 3001, 1, 1);
    check_values("normal", Kind::normal, 777, 3001, 5);
    check_values("normal", Kind::normal, 3001, 77, 56);
    check_values("large", Kind::large, 1000, 1000, 2);
    check_values("dominating", Kind::dominating, 500, 900, 2);
    check_values("rising", Kind::rising, 700, 2500, 2);
    check_values("tiny", Kind::tiny, 300, 500, 2);
    check_values("normal", Kind::normal, 38736, 38736, 2);
    check_refusals();
  }
  if (asked("splits")) {
    check_splits(Kind::normal, 1001, 5, {0, 1, 78, 191, 500, 1001}, {0, 1, 3, 5});
    check_splits(Kind::rising, 2501, 3, {0, 17, 1200, 1201, 2501}, {0, 2, 3});
    check_splits(Kind::normal, 38736, 8, {0, 4843, 4844, 9001, 19368, 38735, 38736}, {0, 1, 4, 8});
  }
  if (asked("time")) {
    for (int rows : {38734, 74410}) {
      for (int heads : {56, 28}) measure(rows, heads);
    }
  }
  std::printf(failures == 0 ? "all passed\n" : "%d FAILED\n", failures);
  return failures == 0 ? 0 : 1;
}
