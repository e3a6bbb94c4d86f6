// The kernels that could compute the transformer's attention on this machine, side by side: on a GPU cuDNN's and, where
// it exists for the card, our own; each through a machine of its own on the same card, as a render would run it.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "render/session.h"
#include "transformer/block.h"

namespace h3 {

class AttentionEngines {
 public:
  // For the session's precision. On CPUs, and in float32, there is one way only, named after the backend.
  AttentionEngines(Session& session, std::int64_t head_dim);
  std::size_t size() const { return engines_.size(); }
  const std::string& name(std::size_t engine) const { return engines_[engine].name; }
  Queue& queue(std::size_t engine) const { return *engines_[engine].queue; }
  // o [rows of query, heads, d] from views of one fused buffer; scale 1 / sqrt(d).
  void run(std::size_t engine, const QkvViews& x, const Tensor& o) const;
  // The engine that the session's transformer takes.
  std::size_t chosen() const { return chosen_; }

 private:
  struct Engine {
    std::string name;
    RankDevice device;  // empty: the session's own
    std::unique_ptr<Queue> own_queue;
    Machine* machine = nullptr;
    Queue* queue = nullptr;
  };
  std::vector<Engine> engines_;
  std::size_t chosen_ = 0;
};

// Operations of attention over `rows` queries and keys.
inline double attention_flops(std::int64_t rows, std::int64_t heads, std::int64_t head_dim) {
  return 4.0 * static_cast<double>(rows) * static_cast<double>(rows) * static_cast<double>(heads * head_dim);
}

}  // namespace h3
