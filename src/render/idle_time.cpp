#include "render/idle_time.h"

namespace h3 {

void IdleTime::work_begins() {
  last_ = ended_ ? std::chrono::duration<double>(Clock::now() - *ended_).count() : 0;
  total_ += last_;
  ended_.reset();
}

void IdleTime::work_ends() {
  ended_ = Clock::now();
}

}  // namespace h3
