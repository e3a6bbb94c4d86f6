#include "twins.h"

#include <cmath>
#include <cstring>

#include "support/goldens.h"

namespace h3::test {

namespace {

std::uint64_t mixed(std::uint64_t x) {
  x += 0x9e3779b97f4a7c15u;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

template <typename T>
void fill_rows(const Tensor& rows, std::uint64_t seed, double deviation) {
  const std::int64_t count = rows.size(0), width = rows.size(1);
#pragma omp parallel for
  for (std::int64_t r = 0; r < count; ++r)
    for (std::int64_t i = 0; i < width; ++i) {
      const std::uint64_t bits = mixed(seed + static_cast<std::uint64_t>(r * width + i));
      const double uniform = static_cast<double>(bits >> 40) * 0x1p-24 - 0.5;
      rows.as<T>()[r * rows.stride(0) + i] = from_f32<T>(static_cast<float>(uniform * deviation * std::sqrt(12.0)));
    }
}

float value_at(DType dtype, const void* data, std::size_t element) {
  switch (dtype) {
    case DType::f32:
      return static_cast<const float*>(data)[element];
    case DType::bf16:
      return to_f32(static_cast<const bf16_t*>(data)[element]);
    case DType::f16:
      return to_f32(static_cast<const f16_t*>(data)[element]);
    default:
      return static_cast<float>(static_cast<const std::uint8_t*>(data)[element]);
  }
}

bool same_value(float a, float b) {
  return std::memcmp(&a, &b, sizeof a) == 0 || (std::isnan(a) && std::isnan(b));
}

template <typename F>
void for_each_element(const Tensor& t, F&& f, int axis = 0, std::int64_t offset = 0) {
  if (axis == t.rank()) return f(offset);
  for (std::int64_t i = 0; i < t.size(axis); ++i) for_each_element(t, f, axis + 1, offset + i * t.stride(axis));
}

}  // namespace

Twin::Twin(Machine& cpu_machine, Machine& gpu_machine, Shape shape, DType dtype, std::int64_t gap) {
  Shape wide = shape;
  wide[-1] += gap;
  const std::size_t bytes = std::max<std::size_t>(static_cast<std::size_t>(wide.elements()) * size_of(dtype), 1);
  host_ = std::make_shared<Buffer>(cpu_machine, bytes, Place::host);
  device_ = std::make_shared<Buffer>(gpu_machine, bytes, Place::device);
  cpu = host_->tensor(wide, dtype).slice(shape.rank() - 1, 0, shape[-1]);
  gpu = device_->tensor(wide, dtype).slice(shape.rank() - 1, 0, shape[-1]);
}

Twin Twin::slice(int axis, std::int64_t begin, std::int64_t end) const {
  Twin t = *this;
  t.cpu = cpu.slice(axis, begin, end);
  t.gpu = gpu.slice(axis, begin, end);
  return t;
}

Twin Twin::split(int axis, std::int64_t outer) const {
  Twin t = *this;
  t.cpu = cpu.split(axis, outer);
  t.gpu = gpu.split(axis, outer);
  return t;
}

Twin Twin::at(std::int64_t index) const {
  Twin t = *this;
  t.cpu = cpu.at(index);
  t.gpu = gpu.at(index);
  return t;
}

std::unique_ptr<Machine> CudaTest::cpu_, CudaTest::gpu_;
std::unique_ptr<Queue> CudaTest::cpu_queue_, CudaTest::gpu_queue_;

void CudaTest::SetUpTestSuite() {
  if (cuda_device_count() == 0) return;
  cpu_ = make_cpu_machine();
  gpu_ = make_cuda_machine(0);
  cpu_queue_ = cpu_->make_queue();
  gpu_queue_ = gpu_->make_queue();
}

void CudaTest::TearDownTestSuite() {
  cpu_queue_.reset();
  gpu_queue_.reset();
  cpu_.reset();
  gpu_.reset();
}

void CudaTest::SetUp() {
  if (!gpu_) GTEST_SKIP() << "no GPU here";
}

void CudaTest::upload(const Twin& t) {
  gpu_->copy(*gpu_queue_, t.whole_cpu(), t.whole_gpu());
  gpu_queue_->wait();
}

std::vector<std::uint8_t> CudaTest::download(const Twin& t) {
  std::vector<std::uint8_t> bytes(t.whole_gpu().bytes());
  gpu_->copy(*gpu_queue_, t.whole_gpu(), Tensor(bytes.data(), t.whole_gpu().shape, DType::u8));
  gpu_queue_->wait();
  return bytes;
}

std::vector<std::uint8_t> CudaTest::bytes_of(const Twin& t) {
  const std::vector<std::uint8_t> all = download(t);
  const std::size_t size = size_of(t.gpu.dtype);
  const auto first =
      static_cast<std::size_t>(static_cast<const std::uint8_t*>(t.gpu.data) - t.whole_gpu().as<const std::uint8_t>());
  std::vector<std::uint8_t> bytes;
  bytes.reserve(t.gpu.bytes());
  for_each_element(t.gpu, [&](std::int64_t offset) {
    const auto* from = all.data() + first + static_cast<std::size_t>(offset) * size;
    bytes.insert(bytes.end(), from, from + size);
  });
  return bytes;
}

Twin CudaTest::poisoned(Shape shape, DType dtype, std::int64_t gap) {
  Twin t(*cpu_, *gpu_, shape, dtype, gap);
  std::memset(t.whole_cpu().data, 0xff, t.whole_cpu().bytes());
  upload(t);
  return t;
}

Twin CudaTest::random(Shape shape, DType dtype, double deviation, std::int64_t gap) {
  Twin t = poisoned(shape, dtype, gap);
  const std::int64_t width = shape[-1], count = width ? shape.elements() / width : 0;
  Tensor rows(t.cpu.data, {count, width}, dtype);
  rows.strides[0] = width + gap;
  seed_ = mixed(seed_);
  switch (dtype) {
    case DType::f32:
      fill_rows<float>(rows, seed_, deviation);
      break;
    case DType::bf16:
      fill_rows<bf16_t>(rows, seed_, deviation);
      break;
    case DType::f16:
      fill_rows<f16_t>(rows, seed_, deviation);
      break;
    default:
      ADD_FAILURE() << "not a float type";
  }
  upload(t);
  return t;
}

Twin CudaTest::copy_of(const Twin& t) {
  Twin copy(*cpu_, *gpu_, t.cpu.shape, t.cpu.dtype, 0);
  std::memcpy(copy.cpu.data, t.cpu.data, t.cpu.bytes());
  upload(copy);
  return copy;
}

Twin CudaTest::values(const std::vector<float>& values) {
  Twin t = poisoned({static_cast<std::int64_t>(values.size())}, DType::f32);
  std::memcpy(t.cpu.data, values.data(), t.cpu.bytes());
  upload(t);
  return t;
}

Twin CudaTest::indices(std::int64_t n, std::int32_t bound) {
  Twin t = poisoned({n}, DType::i32);
  for (std::int64_t i = 0; i < n; ++i)
    t.cpu.as<std::int32_t>()[i] =
        static_cast<std::int32_t>(mixed(seed_ + static_cast<std::uint64_t>(i)) % static_cast<std::uint64_t>(bound));
  upload(t);
  return t;
}

void CudaTest::expect_same(const Twin& t) {
  const std::vector<std::uint8_t> got = download(t);
  const std::size_t size = size_of(t.cpu.dtype);
  std::size_t wrong = 0, first = 0;
  for (std::size_t i = 0; i < got.size() / size; ++i) {
    if (std::memcmp(got.data() + i * size, t.whole_cpu().as<const std::uint8_t>() + i * size, size) == 0) continue;
    const float a = value_at(t.cpu.dtype, got.data(), i), b = value_at(t.cpu.dtype, t.whole_cpu().data, i);
    if (size >= 2 && t.cpu.dtype != DType::i32 && same_value(a, b)) continue;
    if (wrong++ == 0) first = i;
  }
  EXPECT_EQ(wrong, 0u) << "of " << got.size() / size << " values, the first at " << first << ": GPU "
                       << value_at(t.cpu.dtype, got.data(), first) << ", CPU "
                       << value_at(t.cpu.dtype, t.whole_cpu().data, first);
}

void CudaTest::expect_close(const Twin& t, double relative_l2, double largest) {
  const std::vector<std::uint8_t> got = download(t);
  const std::size_t size = size_of(t.cpu.dtype), count = got.size() / size;
  std::vector<float> actual, expected;
  std::size_t outside = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const float a = value_at(t.cpu.dtype, got.data(), i), b = value_at(t.cpu.dtype, t.whole_cpu().data, i);
    if (std::isnan(b)) {
      outside += same_value(a, b) ? 0 : 1;
      continue;
    }
    actual.push_back(a);
    expected.push_back(b);
  }
  EXPECT_EQ(outside, 0u) << "values written outside the tensor, or numbers where the CPU has NaN";
  const Distance d = distance(actual, expected);
  EXPECT_LE(d.relative_l2, relative_l2);
  EXPECT_LE(d.largest, largest);
}

}  // namespace h3::test
