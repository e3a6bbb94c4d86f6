#include "bench/attention_engines.h"

#include <cmath>

namespace h3 {

AttentionEngines::AttentionEngines(Session& session, std::int64_t head_dim) {
  Machine& machine = session.machine();
  if (machine.place() == Place::host || session.precision() == Precision::f32) {
    engines_.emplace_back();
    engines_[0].name = machine.backend();
    engines_[0].machine = &machine;
    engines_[0].queue = &session.queue();
    return;
  }
  std::vector<std::string> names{"cudnn"};
  // The table of compute/cuda/attention.cpp.
  if (machine.capability() == "9.0" && head_dim == 128) names.push_back("own");
  for (const std::string& name : names) {
    RunOptions options = session.options();
    options.attention = name;
    Engine engine;
    engine.name = name;
    engine.device = make_rank_device(session.cluster(), options);
    engine.machine = engine.device.machine.get();
    engine.own_queue = engine.machine->make_queue();
    engine.queue = engine.own_queue.get();
    engines_.push_back(std::move(engine));
  }
  chosen_ = session.options().attention == "cudnn" ? 0 : engines_.size() - 1;
}

void AttentionEngines::run(std::size_t engine, const QkvViews& x, const Tensor& o) const {
  Operators::Attention spec;
  spec.scale = 1.0f / std::sqrt(static_cast<float>(o.size(-1)));
  engines_[engine].machine->operators().attention(*engines_[engine].queue, x.q, x.k, x.v, o, spec);
}

}  // namespace h3
