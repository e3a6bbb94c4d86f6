// A whole render against the sum of its stages' ceilings: two scenes of one size are rendered as `render` does it, into
// files; the first, of one step, brings weights and libraries into place, the second is reported.
#pragma once

#include <string>

#include "bench/benches.h"
#include "parallel/cluster.h"
#include "render/run_options.h"

namespace h3 {

struct RenderBenchRequest {
  RunOptions options;                  // `output` receives the renders and what the bench needs beside them
  std::vector<std::string> overrides;  // "output.KEY=VALUE": what the scenes leave
  ClipSize clip;
  std::int64_t text_rows = 0;    // the prompts take at least so many
  std::int64_t evaluations = 0;  // steps of each scene
  std::string tokenizer;         // model folder whose tokenizer serves a synthetic model of the released size; or ""
  int repeats = 5;               // of the ceilings
};

// Collective; the table is whole on rank 0. A stage's ceiling: denoising and video, the operators' rates at this clip's
// shapes; text, the stage alone, as the bench of this name times it. Stages without one count with nothing. Throws
// UserError for a tokenizer beside a model that has its own, RunError where a scene fails.
BenchTable bench_render(Cluster& cluster, const RenderBenchRequest& request);

}  // namespace h3
