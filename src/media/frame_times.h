// When each stored frame of a clip is shown, in slots of 1/24 s counted from the first frame: frame i fills the slots
// from the one nearest to its time to the one nearest to the next frame's, which may be none (spec/text.md 3.2). Times
// that lie on a constant rate, but for the rounding of the container's clock, are taken as exact multiples of it, so
// that a file of 29.97 frames a second paces alike in every container; others count as they are.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace h3 {

// The unit of a container's timestamps, in seconds.
struct Tick {
  std::int64_t numerator = 1, denominator = 1;
};

class FrameTimes {
 public:
  FrameTimes() = default;
  // `count` frames at `rate` a second.
  FrameTimes(std::int64_t count, double rate);
  // Frames that begin at `ticks` (ascending, at least one); the last ends at `end`. `rates` are the constant rates that
  // the container suggests.
  FrameTimes(const std::vector<std::int64_t>& ticks, std::int64_t end, Tick tick, const std::vector<double>& rates);

  std::size_t size() const { return positions_.empty() ? 0 : positions_.size() - 1; }
  // The first slot of frame i; of i = size(): the number of slots.
  std::int64_t first_slot(std::size_t i) const;
  std::int64_t slots() const { return positions_.empty() ? 0 : first_slot(size()); }
  // Frames a second on average.
  double rate() const;

 private:
  bool take_constant_rate(const std::vector<std::int64_t>& ticks, std::int64_t end, Tick tick, double rate);

  std::vector<double> positions_;  // in slots, of every frame and of the end
};

}  // namespace h3
