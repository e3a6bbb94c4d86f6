// Times of the CUDA operators at the sizes of a long clip, as a table: rates of the linear layers (the pinned algorithm
// and the heuristic's others) and of attention, bytes per second of the memory-bound kernels. Random data; each line is
// the median of some repetitions after two that warm up.
//
//   measure_cuda [rows]
#include <cuda_runtime_api.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <functional>
#include <vector>

#include "base/error.h"
#include "compute/cuda/cuda_machine.h"
#include "compute/cuda/cuda_queue.h"
#include "compute/cuda/gemm_table.h"
#include "compute/operators.h"

namespace h3 {
namespace {

class Bench {
 public:
  explicit Bench(const CudaOptions& options) : gpu(make_cuda_machine(0, options)), queue(gpu->make_queue()) {
    H3_CUDA(cudaEventCreate(&begin_));
    H3_CUDA(cudaEventCreate(&end_));
    seed_ = Buffer(*gpu, kSeed * sizeof(float), Place::device);
    std::vector<float> values(kSeed);
    std::uint32_t state = 1;
    for (float& v : values) {
      state = state * 1664525u + 1013904223u;
      v = static_cast<float>(state >> 8) * 0x1p-23f - 1.0f;
    }
    gpu->copy(*queue, Tensor(values.data(), {kSeed}, DType::f32), seed_.tensor({kSeed}, DType::f32));
    queue->wait();
  }

  // A contiguous tensor of uniform values in [-1, 1].
  Tensor random(Shape shape, DType dtype) {
    buffers_.emplace_back(*gpu, static_cast<std::size_t>(shape.elements()) * size_of(dtype), Place::device);
    const Tensor flat = buffers_.back().tensor({shape.elements()}, dtype);
    for (std::int64_t i = 0; i < shape.elements(); i += kSeed) {
      const std::int64_t n = std::min(kSeed, shape.elements() - i);
      ops().cast(*queue, seed_.tensor({kSeed}, DType::f32).rows(0, n), flat.rows(i, i + n));
    }
    return buffers_.back().tensor(shape, dtype);
  }
  Tensor zero_index(std::int64_t n) {
    buffers_.emplace_back(*gpu, static_cast<std::size_t>(n) * 4, Place::device);
    ops().fill_zero(*queue, buffers_.back().tensor({n}, DType::i32));
    return buffers_.back().tensor({n}, DType::i32);
  }
  void forget() {
    queue->wait();
    buffers_.clear();
  }

  // Median seconds of f.
  double seconds(const std::function<void()>& f, int repetitions = 7) {
    std::vector<double> times;
    for (int i = -2; i < repetitions; ++i) {
      H3_CUDA(cudaEventRecord(begin_, cuda_queue(*queue).stream()));
      f();
      H3_CUDA(cudaEventRecord(end_, cuda_queue(*queue).stream()));
      H3_CUDA(cudaEventSynchronize(end_));
      float milliseconds = 0;
      H3_CUDA(cudaEventElapsedTime(&milliseconds, begin_, end_));
      if (i >= 0) times.push_back(milliseconds * 1e-3);
    }
    std::nth_element(times.begin(), times.begin() + repetitions / 2, times.end());
    return times[static_cast<std::size_t>(repetitions / 2)];
  }
  Operators& ops() { return gpu->operators(); }

  std::unique_ptr<Machine> gpu;
  std::unique_ptr<Queue> queue;

 private:
  static constexpr std::int64_t kSeed = (std::int64_t{1} << 22) + 7;
  cudaEvent_t begin_ = nullptr, end_ = nullptr;
  Buffer seed_;
  std::vector<Buffer> buffers_;
};

void linear(Bench& b, std::int64_t rows, std::int64_t k, std::int64_t n, DType dtype, bool biased) {
  const Tensor x = b.random({rows, k}, dtype), w = b.random({n, k}, dtype), y = b.random({rows, n}, dtype);
  const Tensor bias = biased ? b.random({n}, dtype) : Tensor();
  const double flops = 2.0 * static_cast<double>(rows) * static_cast<double>(k) * static_cast<double>(n);
  const double t = b.seconds([&] { b.ops().linear(*b.queue, x, {w, bias, n}, y); });
  std::printf("linear %-4s %6ld x %5ld -> %5ld   %8.3f ms %7.1f TFLOP/s", std::string(name_of(dtype)).c_str(), rows, k,
              n, t * 1e3, flops / t * 1e-12);
  // The other candidates, for comparison.
  CudaQueue& q = cuda_queue(*b.queue);
  GemmKey key{k, n, dtype, dtype, {}};
  if (biased) key.bias = dtype;
  const auto candidates = GemmTable::candidates(q.blas(), CudaQueue::kWorkspace, key);
  std::printf("  candidates:");
  for (std::size_t i = 0; i < std::min<std::size_t>(candidates.size(), 6); ++i) {
    GemmProblem p(key, {rows, n, k, k, n}, bias.data);
    const float one = 1, zero = 0;
    const double other = b.seconds(
        [&] {
          H3_CUDA(cublasLtMatmul(q.blas(), p.operation(), &one, w.data, p.weight(), x.data, p.x(), &zero, y.data, p.y(),
                                 y.data, p.y(), &candidates[i], q.workspace(), CudaQueue::kWorkspace, q.stream()));
        },
        3);
    std::printf(" %.1f", flops / other * 1e-12);
  }
  std::printf(" (%zu)\n", candidates.size());
  b.forget();
}

void attention(Bench& b, const char* name, std::int64_t rows, std::int64_t heads, std::int64_t key_heads,
               std::int64_t d, DType dtype, bool causal) {
  const std::int64_t all = heads + 2 * key_heads;
  const Tensor qkv = b.random({rows, all * d}, dtype), o = b.random({rows, heads * d}, dtype).split(1, heads);
  Tensor q, k, v;
  if (heads == key_heads) {
    const Tensor fused = qkv.split(1, heads);
    q = fused.slice(2, 0, d), k = fused.slice(2, d, 2 * d), v = fused.slice(2, 2 * d, 3 * d);
  } else {
    const Tensor each = qkv.split(1, all);
    q = each.slice(1, 0, heads), k = each.slice(1, heads, heads + key_heads), v = each.slice(1, heads + key_heads, all);
  }
  const float scale = 1.0f / std::sqrt(static_cast<float>(d));
  const double s = static_cast<double>(rows);
  const double flops = 4.0 * s * s * static_cast<double>(heads * d) * (causal ? 0.5 : 1.0);
  const double t = b.seconds([&] { b.ops().attention(*b.queue, q, k, v, o, {scale, causal, 0}); }, 5);
  std::printf("attention %-6s %-4s rows %6ld heads %2ld/%2ld d %3ld%s  %8.3f ms %7.1f TFLOP/s\n", name,
              std::string(name_of(dtype)).c_str(), rows, heads, key_heads, d, causal ? " causal" : "", t * 1e3,
              flops / t * 1e-12);
  b.forget();
}

void memory(Bench& b, const char* name, double bytes, const std::function<void()>& f) {
  const double t = b.seconds(f, 11);
  std::printf("%-28s %8.3f ms %7.0f GB/s\n", name, t * 1e3, bytes / t * 1e-9);
  std::fflush(stdout);
}

void rows_kernels(Bench& b, std::int64_t rows) {
  constexpr std::int64_t kWidth = 5376, kHeads = 56, kSize = 128, kFfn = 14336;
  const DType t = DType::bf16;
  Operators& ops = b.ops();
  Queue& q = *b.queue;
  const double bytes = static_cast<double>(rows * kWidth) * 2;
  const Tensor x = b.random({rows, kWidth}, t), y = b.random({rows, kWidth}, t), a = b.random({rows, kWidth}, t);
  const Tensor table = b.random({15, 6 * kWidth}, t), index = b.zero_index(rows), w = b.random({kWidth}, t);
  const Tensor scale = table.slice(1, 0, kWidth), shift = table.slice(1, kWidth, 2 * kWidth);
  memory(b, "copy_rows", 2 * bytes, [&] { ops.copy_rows(q, x, y); });
  memory(b, "rms_norm", 2 * bytes, [&] { ops.rms_norm(q, x, w, 1e-5f, NormRounding::once, y); });
  memory(b, "modulate", 2 * bytes, [&] { ops.modulate(q, x, scale, shift, index, y); });
  memory(b, "norm_modulate", 2 * bytes, [&] { ops.norm_modulate(q, x, w, 1e-5f, scale, shift, index, y); });
  memory(b, "gated_add", 3 * bytes, [&] { ops.gated_add(q, x, scale, index, a); });
  memory(b, "add", 3 * bytes, [&] { ops.add(q, y, a); });
  memory(b, "layer_norm", 2 * bytes, [&] { ops.layer_norm(q, x, w, w, 1e-5f, y); });
  memory(b, "gather", 2 * bytes, [&] { ops.gather(q, x, index, y); });
  b.forget();
  const Tensor u = b.random({rows, 2 * kFfn}, t), s = b.random({rows, kFfn}, t);
  memory(b, "swiglu", static_cast<double>(rows * kFfn) * 6, [&] { ops.swiglu(q, u, s); });
  b.forget();
  const Tensor qkv = b.random({rows, kHeads * 3 * kSize}, t).split(1, kHeads), head_weight = b.random({kSize}, t);
  const Tensor cos = b.random({rows, 48}, t), sin = b.random({rows, 48}, t);
  memory(b, "head_norm_rope", static_cast<double>(rows * kHeads * kSize) * 4, [&] {
    ops.head_norm_rope(q, qkv.slice(2, 0, kSize), {head_weight, 1e-5f, true, NormRounding::once, cos, sin, false});
  });
  b.forget();
  const std::int64_t tokens = 8 * 1797;
  const Tensor h = b.random({tokens, 2048}, DType::f32), half = b.random({tokens, 2048}, DType::f16),
               c = b.random({2048}, DType::f32);
  memory(b, "rms_norm f32->f16", static_cast<double>(tokens * 2048) * 6,
         [&] { ops.rms_norm(q, h, c, 1e-5f, NormRounding::once, half); });
  memory(b, "scaled_add", static_cast<double>(tokens * 2048) * 10, [&] { ops.scaled_add(q, h, half, c); });
  b.forget();
  const Tensor patches = b.random({1792, 3072}, DType::f32), pixels = b.random({3, 28, 256, 256}, DType::f32);
  memory(b, "unpatchify", static_cast<double>(1792 * 3072) * 8, [&] {
    ops.unpatchify(q, patches, {7, 16, 16}, pixels);
  });
  b.forget();
  const Tensor frames = b.random({3, 17, 768, 1344}, DType::f32), older = b.random({3, 17, 768, 1344}, DType::f32);
  const Tensor nans = b.zero_index(1), u8 = b.zero_index(17 * 768 * 1344 * 3 / 4);
  const Tensor rgb(u8.data, {17, 768, 1344, 3}, DType::u8, Place::device);
  const std::array<float, 3> one{1, 1, 1};
  const double pixels_count = 3.0 * 17 * 768 * 1344;
  memory(b, "frames_to_u8", pixels_count * 5, [&] { ops.frames_to_u8(q, frames, one, one, false, rgb, nans); });
  memory(b, "cross_fade", pixels_count * 12, [&] {
    ops.cross_fade(q, older.reshape({3 * 17, 768, 1344}), 1, frames.reshape({3 * 17, 768, 1344}));
  });
  b.forget();
  const Tensor sound = b.random({2, 128, 30000}, DType::f32), out = b.random({2, 128, 30000}, DType::f32);
  const Tensor alpha = b.random({128}, DType::f32), filter = b.random({12}, DType::f32);
  memory(b, "snake_beta", 2.0 * 128 * 30000 * 8, [&] { ops.snake_beta(q, sound, alpha, alpha, filter, out); });
  b.forget();
}

void convolutions(Bench& b) {
  const auto report = [](const char* name, double flops, double t) {
    std::printf("%-28s %8.3f ms %7.1f TFLOP/s\n", name, t * 1e3, flops / t * 1e-12);
  };
  {
    const Tensor x = b.random({2, 256, 15075}, DType::f32), w = b.random({256, 256, 7}, DType::f32),
                 y = b.random({2, 256, 15075}, DType::f32);
    report("conv1d 256 k7", 2.0 * 2 * 256 * 256 * 7 * 15075, b.seconds([&] {
      b.ops().conv1d(*b.queue, x, w, {}, {1, 1, 3}, y);
    }));
    b.forget();
  }
  {
    const Tensor x = b.random({128, 17, 258, 258}, DType::f32), w = b.random({128, 128, 3, 3, 3}, DType::f32),
                 y = b.random({128, 17, 256, 256}, DType::f32);
    report("conv3d 128 3x3x3", 2.0 * 128 * 128 * 27 * 17 * 256 * 256,
           b.seconds([&] { b.ops().conv3d_causal(*b.queue, x, w, {}, {}, y); }, 3));
    b.forget();
  }
}

int run(std::int64_t rows) {
  Bench b({}), cudnn({AttentionEngine::cudnn}), own({AttentionEngine::own});
  std::printf("%s, %s\n", b.gpu->name().c_str(), b.gpu->library_versions().c_str());
  for (const auto& [k, n] :
       std::vector<std::pair<std::int64_t, std::int64_t>>{{5376, 21504}, {7168, 5376}, {5376, 28672}, {14336, 5376}})
    linear(b, rows, k, n, DType::bf16, false);
  for (const auto& [k, n] :
       std::vector<std::pair<std::int64_t, std::int64_t>>{{2048, 6144}, {2048, 2048}, {2048, 16384}, {8192, 2048}})
    linear(b, 4 * 1797, k, n, DType::f16, true);
  linear(b, rows, 5376, 96, DType::f32, true);
  linear(b, 4 * 1797, 2048, 3072, DType::f32, true);
  attention(b, "auto", rows, 56, 56, 128, DType::bf16, false);
  attention(cudnn, "cudnn", rows, 56, 56, 128, DType::bf16, false);
  attention(cudnn, "cudnn", 1797, 32, 32, 64, DType::f16, false);
  attention(cudnn, "cudnn", 4096, 64, 8, 128, DType::bf16, true);
  attention(own, "own", 1797, 32, 32, 64, DType::f32, false);
  attention(own, "own", 4096, 8, 8, 128, DType::f32, false);
  rows_kernels(b, rows);
  convolutions(b);
  std::printf("%s%s", b.ops().algorithms().c_str(), cudnn.ops().algorithms().c_str());
  return 0;
}

}  // namespace
}  // namespace h3

int main(int argc, char** argv) {
  try {
    return h3::run(argc > 1 ? std::stoll(argv[1]) : 38222);
  } catch (const std::exception& e) {
    std::fprintf(stderr, "%s\n", e.what());
    return 1;
  }
}
