#include "render/weight_lock.h"

#include "base/log.h"
#include "render/progress.h"
#include "weights/host_memory.h"
#ifdef H3RENDER_WITH_CUDA
#include "compute/cuda/page_lock.h"
#else
namespace h3 {
class PageLock {};
}  // namespace h3
#endif

namespace h3 {

WeightLock::WeightLock(std::unique_ptr<PageLock> pages) : pages_(std::move(pages)) {}
WeightLock::~WeightLock() = default;

#ifdef H3RENDER_WITH_CUDA

namespace {

// Pages of a disk that are locked stay in memory, where others make room when something else needs it.
std::string memory_shortage(const WeightBlock& block) {
  constexpr std::size_t kReserve = std::size_t{4} << 30;
  const HostMemory host = host_memory();
  if (!block.on_disk() || block.bytes() + kReserve <= host.available) return "";
  return fmt::format("{} has {} of memory available", host.limit, bytes_in_words(host.available));
}

void report(const std::string& what, const WeightBlock& block, const PageLock::Outcome& outcome, bool tells) {
  const std::string locked = bytes_in_words(outcome.bytes);
  if (!outcome.obstacle.empty())
    spdlog::warn("{}: {} of {} page-locked, copies of the rest are slower: {}", what, locked,
                 bytes_in_words(block.bytes()), outcome.obstacle);
  else if (tells)
    spdlog::info("{}: page-locked {} in {}", what, locked, duration_text(outcome.seconds));
}

}  // namespace

std::shared_ptr<WeightLock> WeightLock::start(const Machine& machine, const WeightBlock& block, std::string what,
                                              bool tells) {
  if (machine.place() != Place::device || block.bytes() == 0) return nullptr;
  const std::string shortage = memory_shortage(block);
  if (!shortage.empty()) {
    if (tells) spdlog::info("{}: not page-locked, so copies to the GPU are slower: {}", what, shortage);
    return nullptr;
  }
  auto pages = std::make_unique<PageLock>(
      std::span(block.data(), block.bytes()),
      [what, &block, tells](const PageLock::Outcome& outcome) { report(what, block, outcome, tells); });
  return std::shared_ptr<WeightLock>(new WeightLock(std::move(pages)));
}

WeightLock::Outcome WeightLock::wait() {
  const PageLock::Outcome& outcome = pages_->wait();
  return {outcome.bytes, outcome.seconds};
}

#else

std::shared_ptr<WeightLock> WeightLock::start(const Machine&, const WeightBlock&, std::string, bool) {
  return nullptr;
}

WeightLock::Outcome WeightLock::wait() {
  return {};
}

#endif

}  // namespace h3
