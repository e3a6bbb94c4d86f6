// Host memory page-locked for a GPU's copies: it then travels at the speed of the bus and beside kernels, where
// pageable memory passes through a small buffer of the driver. Locking takes seconds for a whole model, so that a
// thread of its own locks piece after piece while the memory is already in use; copies from what is not locked yet work
// all the same. Each process that copies locks the pages for itself.
#pragma once

#include <atomic>
#include <cstddef>
#include <functional>
#include <span>
#include <string>
#include <thread>

namespace h3 {

class PageLock {
 public:
  // Locks begin and end at addresses that are multiples of this, or with the memory. A copy never crosses such an
  // address, since the driver refuses one that is locked in part.
  static constexpr std::size_t kPiece = std::size_t{256} << 20;

  struct Outcome {
    std::size_t bytes = 0;  // locked
    double seconds = 0;
    std::string obstacle;  // why the system refused the rest, or ""
  };

  // Begins to lock `memory`, whole pages that outlive the lock, for the calling thread's GPU. `done` is called on the
  // locking thread at the end, unless the lock goes before that.
  PageLock(std::span<std::byte> memory, std::function<void(const Outcome&)> done);
  // Stops after the piece that is being locked, and unlocks. No copy from the memory may be under way.
  ~PageLock();
  PageLock(const PageLock&) = delete;
  PageLock& operator=(const PageLock&) = delete;

  // Returns when all is locked that will be.
  const Outcome& wait();

 private:
  void lock_all(int device);

  std::span<std::byte> memory_;
  std::function<void(const Outcome&)> done_;
  Outcome outcome_;
  std::atomic<bool> stop_ = false;
  std::thread thread_;
};

}  // namespace h3
