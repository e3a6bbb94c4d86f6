// Moves tensors between ranks; it copies bits and never reduces floating point (DESIGN: same bits on any number of
// ranks). NcclCommunicator serves GPUs, PeerCommunicator the GPUs of one node, MpiCommunicator goes through host
// memory. Every rank calls every collective, also with nothing to send.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "compute/machine.h"
#include "compute/tensor.h"
#include "parallel/transfer.h"

namespace h3 {

class Communicator {
 public:
  virtual ~Communicator() = default;
  virtual int rank() const = 0;
  virtual int size() const = 0;

  // Rank r's `blocks[r]` reaches every rank at the same index: all ranks pass size() contiguous views of equal shapes
  // on every rank (sizes may differ between indices, and be empty), and blocks[rank()] holds this rank's data already.
  virtual void all_gather(Queue& q, std::span<const Tensor> blocks) = 0;
  // sends[r] goes to rank r and arrives in its receives[rank()]; contiguous views, empty ones are legal.
  virtual void all_to_all(Queue& q, std::span<const Tensor> sends, std::span<const Tensor> receives) = 0;
  // An all-to-all to be run many times: its tensors are 2-D views with free row strides, those of this rank itself are
  // ignored. `staging` has room for the strided ones. Collective, as the transfer's end is; the tensors outlive it.
  virtual std::unique_ptr<Transfer> prepare(Operators& operators, std::span<const Tensor> sends,
                                            std::span<const Tensor> receives, const Tensor& staging);
  // Do prepared transfers move data beside the queue, by engines that take nothing from kernels?
  virtual bool beside_queue() const { return false; }
  // Point to point, contiguous, in order per pair. Both block until the data may be reused or used.
  virtual void send(Queue& q, const Tensor& x, int to, int tag) = 0;
  virtual void receive(Queue& q, const Tensor& x, int from, int tag) = 0;
  virtual void broadcast(Queue& q, const Tensor& x, int root) = 0;

  // ---- host side: small, blocking, for decisions -------------------------------------------------------------------
  virtual void barrier() = 0;
  // The largest of all ranks' values.
  virtual std::int64_t agree_max(std::int64_t value) = 0;
  // Every rank's text, by rank.
  virtual std::vector<std::string> gather_text(std::string_view text) = 0;
  // Rank `root`'s text on every rank.
  virtual std::string broadcast_text(std::string_view text, int root = 0) = 0;
  // Every rank's value, by rank.
  virtual std::vector<double> gather_value(double value) = 0;

  // Bytes this rank received from others so far, for the log.
  virtual std::uint64_t bytes_received() const = 0;
  // Seconds that device queues spent on transfers, or waiting for them, so far; waits for them. 0 where calls block the
  // host, which then sees the time itself.
  virtual double transfer_seconds() { return 0; }
};

}  // namespace h3
