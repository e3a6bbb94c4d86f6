// Brings a component's weights to where operators work, in groups that are used one after another (one group a
// block). On the CPU the node's one copy is used as it is. On a GPU groups are `resident`, or `streamed`: two slots,
// the next group copied on a queue of its own while the current one computes. Neither changes a bit.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "compute/machine.h"
#include "weights/weight_set.h"

namespace h3 {

enum class Residency : std::uint8_t { resident, streamed };
std::string_view name_of(Residency residency);

// The tensors below `prefix`, under their names without it.
WeightSet below(const WeightSet& weights, std::string_view prefix);

class WeightGroups {
 public:
  // `groups` must outlive this object. Resident groups are uploaded here, in the order of `q`.
  WeightGroups(Machine& machine, Queue& q, std::vector<WeightSet> groups, Residency residency);
  std::size_t size() const { return host_.size(); }
  // Group `i` for work that is given to `q` from now on; also starts to fetch group `i + 1` (the first again after the
  // last). A streamed group stays valid until the group after next is asked for.
  const WeightSet& use(Queue& q, std::size_t i);

  // Device bytes that this takes for groups of the given sizes; 0 where weights are used in place.
  static std::size_t device_bytes(const std::vector<WeightSet>& groups, Residency residency);

 private:
  struct Slot {
    Buffer buffer;
    WeightSet weights;
    std::size_t group = static_cast<std::size_t>(-1);
  };
  void fetch(std::size_t i, Slot& slot, Queue& used_by);

  Machine& machine_;
  std::vector<WeightSet> host_;
  bool in_place_ = false;
  Residency residency_;
  std::vector<Slot> slots_;
  std::unique_ptr<Queue> copies_;
};

}  // namespace h3
