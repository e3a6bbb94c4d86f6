// How time falls with ranks. One run measures the rank count it was started with: a step of one clip on all ranks
// (strong), of a clip with equal operations a rank (weak), a clip on every rank alone (throughput), and the other
// stages; its points join those of earlier runs in one record (bench/scaling_record.h).
#pragma once

#include "bench/benches.h"
#include "bench/scaling_record.h"

namespace h3 {

struct ScalingRequest {
  std::vector<std::int64_t> rows;
  std::int64_t text_rows = 0;
  ClipSize clip;
  std::vector<std::string> stages;  // of "step", "text", "decode"
};

// Rows of the clip whose step has `ranks` times the operations of one of `base` rows.
std::int64_t weak_rows(const TransformerConfig& config, std::int64_t base, int ranks);

// An empty record of this session's machine, model and precision.
ScalingRecord new_record(Session& session);

// Collective. The same record on all ranks.
void bench_scaling(Bench& bench, const ScalingRequest& request, ScalingRecord& record);

}  // namespace h3
