#include "weights/residency.h"

#include <algorithm>

namespace h3 {

namespace {

constexpr std::size_t kAlign = 256;

std::size_t aligned(std::size_t bytes) {
  return (bytes + kAlign - 1) / kAlign * kAlign;
}

std::size_t group_bytes(const WeightSet& group) {
  std::size_t bytes = 0;
  for (const auto& [name, tensor] : group.tensors()) bytes += aligned(tensor.bytes());
  return bytes;
}

}  // namespace

std::string_view name_of(Residency residency) {
  return residency == Residency::resident ? "resident" : "streamed";
}

WeightSet below(const WeightSet& weights, std::string_view prefix) {
  WeightSet part;
  for (auto it = weights.tensors().lower_bound(prefix); it != weights.tensors().end(); ++it) {
    if (!std::string_view(it->first).starts_with(prefix)) break;
    part.add(it->first.substr(prefix.size()), it->second);
  }
  return part;
}

WeightGroups::WeightGroups(Machine& machine, Queue& q, std::vector<WeightSet> groups, Residency residency)
    : machine_(machine), host_(std::move(groups)), in_place_(machine.place() == Place::host), residency_(residency) {
  if (in_place_) return;
  if (residency_ == Residency::streamed && host_.size() > 2) {
    std::size_t largest = 0;
    for (const WeightSet& group : host_) largest = std::max(largest, group_bytes(group));
    for (int i = 0; i < 2; ++i) slots_.push_back({Buffer(machine_, largest, machine_.place()), {}});
    copies_ = machine_.make_queue();
    fetch(0, slots_[0], q);
    return;
  }
  residency_ = Residency::resident;
  for (std::size_t i = 0; i < host_.size(); ++i) {
    slots_.push_back({Buffer(machine_, group_bytes(host_[i]), machine_.place()), {}});
    fetch(i, slots_[i], q);
  }
}

void WeightGroups::fetch(std::size_t i, Slot& slot, Queue& used_by) {
  Queue& q = copies_ ? *copies_ : used_by;
  // What still reads the slot's old group was given to `used_by` before.
  if (copies_) copies_->wait_for(used_by);
  slot.group = i;
  slot.weights = WeightSet();
  std::size_t at = 0;
  for (const auto& [name, host] : host_[i].tensors()) {
    const Tensor there(static_cast<char*>(slot.buffer.data()) + at, host.shape, host.dtype, machine_.place());
    machine_.copy(q, host, there);
    slot.weights.add(name, there);
    at += aligned(host.bytes());
  }
}

const WeightSet& WeightGroups::use(Queue& q, std::size_t i) {
  if (in_place_) return host_[i];
  if (residency_ == Residency::resident) return slots_[i].weights;
  Slot& slot = slots_[0].group == i ? slots_[0] : slots_[1];
  Slot& other = slots_[0].group == i ? slots_[1] : slots_[0];
  if (slot.group != i) fetch(i, slot, q);
  q.wait_for(*copies_);
  const std::size_t next = (i + 1) % host_.size();
  if (other.group != next) fetch(next, other, q);
  return slot.weights;
}

std::size_t WeightGroups::device_bytes(const std::vector<WeightSet>& groups, Residency residency) {
  std::size_t sum = 0, largest = 0;
  for (const WeightSet& group : groups) {
    sum += group_bytes(group);
    largest = std::max(largest, group_bytes(group));
  }
  return residency == Residency::resident || groups.size() <= 2 ? sum : 2 * largest;
}

}  // namespace h3
