#include "parallel/transfer.h"

#include "parallel/communicator.h"

namespace h3 {

QueuedTransfer::QueuedTransfer(Communicator& communicator, Operators& operators, std::span<const Tensor> sends,
                               std::span<const Tensor> receives, const Tensor& staging)
    : communicator_(communicator), operators_(operators) {
  std::int64_t used = 0;
  const auto contiguous = [&](const Tensor& t, std::vector<Staged>& staged) {
    if (t.elements() == 0 || t.contiguous()) return t;
    const Tensor place = staging.slice(0, used, used + t.elements()).reshape(t.shape);
    used += t.elements();
    staged.push_back({t, place});
    return place;
  };
  for (const Tensor& t : sends) sends_.push_back(contiguous(t, packed_));
  for (const Tensor& t : receives) receives_.push_back(contiguous(t, unpacked_));
}

std::unique_ptr<Transfer> Communicator::prepare(Operators& operators, std::span<const Tensor> sends,
                                                std::span<const Tensor> receives, const Tensor& staging) {
  return std::make_unique<QueuedTransfer>(*this, operators, sends, receives, staging);
}

void QueuedTransfer::start(Queue& q) {
  for (const Staged& s : packed_) operators_.copy_rows(q, s.strided, s.contiguous);
  communicator_.all_to_all(q, sends_, receives_);
}

void QueuedTransfer::finish(Queue& q) {
  for (const Staged& s : unpacked_) operators_.copy_rows(q, s.contiguous, s.strided);
}

}  // namespace h3
