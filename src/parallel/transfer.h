// A collective that is prepared once and started many times with the same tensors, as each layer's exchange is. A
// transport with engines of its own moves the data beside the queue between `start` and `finish`; one that works in
// queue order moves it in `start`. Tensors are 2-D views whose rows may be strided.
#pragma once

#include <span>
#include <vector>

#include "compute/operators.h"

namespace h3 {

class Communicator;

class Transfer {
 public:
  virtual ~Transfer() = default;
  // What the queue was given so far has filled the sends and no longer reads the receives.
  virtual void start(Queue& q) = 0;
  // What the queue is given later finds the receives filled and may overwrite the sends.
  virtual void finish(Queue& q) = 0;
};

// Runs an all-to-all in queue order. Strided tensors pass through `staging`, which has room for them one after another.
class QueuedTransfer final : public Transfer {
 public:
  QueuedTransfer(Communicator& communicator, Operators& operators, std::span<const Tensor> sends,
                 std::span<const Tensor> receives, const Tensor& staging);
  void start(Queue& q) override;
  void finish(Queue& q) override;

 private:
  struct Staged {
    Tensor strided, contiguous;
  };

  Communicator& communicator_;
  Operators& operators_;
  std::vector<Tensor> sends_, receives_;  // contiguous
  std::vector<Staged> packed_, unpacked_;
};

}  // namespace h3
