#include "base/error.h"
#include "twins.h"

namespace h3::test {
namespace {

class CudaMachineTest : public CudaTest {};

TEST_F(CudaMachineTest, SaysWhatItIs) {
  EXPECT_EQ(gpu_->backend(), "cuda");
  EXPECT_EQ(gpu_->place(), Place::device);
  EXPECT_FALSE(gpu_->name().empty());
  EXPECT_NE(gpu_->capability().find('.'), std::string::npos);
  EXPECT_NE(gpu_->library_versions().find("cuDNN 9."), std::string::npos) << gpu_->library_versions();
  EXPECT_GT(gpu_->free_memory(), 0u);
  EXPECT_GE(gpu_->total_memory(), gpu_->free_memory());
  EXPECT_NE(cuda_bus_id(0).find(':'), std::string::npos);
}

TEST_F(CudaMachineTest, QueuesWaitForEachOther) {
  const auto other = gpu_->make_queue();
  constexpr std::int64_t kMany = 1 << 24;
  const Twin x = random({kMany}, DType::f32), y = poisoned({kMany}, DType::f32);
  Buffer pinned(*gpu_, kMany * sizeof(float), Place::host);
  for (int i = 0; i < 8; ++i) gpu_operators().add(*gpu_queue_, x.gpu, x.gpu);
  other->wait_for(*gpu_queue_);
  gpu_->copy(*other, x.gpu, y.gpu);
  gpu_->copy(*other, y.gpu, pinned.tensor({kMany}, DType::f32));
  other->wait();
  const auto* got = static_cast<const float*>(pinned.data());
  for (std::int64_t i = 0; i < kMany; ++i) ASSERT_EQ(got[i], x.cpu.as<float>()[i] * 256.0f) << i;
}

TEST_F(CudaMachineTest, RefusesWhatIsNotThere) {
  EXPECT_THROW(make_cuda_machine(4096), UserError);
  EXPECT_THROW(make_cuda_machine(-1), UserError);
  EXPECT_THROW(gpu_->allocate(std::size_t{1} << 60, Place::device), RunError);
  const Twin x = random({4}, DType::f32);
  gpu_operators().clamp(*gpu_queue_, x.gpu, 0.0f, 1.0f);  // the failed allocation leaves nothing behind
  gpu_queue_->wait();
}

}  // namespace
}  // namespace h3::test
