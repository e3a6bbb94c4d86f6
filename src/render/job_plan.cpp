#include "render/job_plan.h"

namespace h3 {

RunPlan plan_job(const Session& session, const SceneJob& job, std::int64_t text_rows) {
  PlanRequest request;
  request.model = session.config();
  request.geometry = job.geometry;
  request.text_rows = text_rows;
  add_conditions(request, job.media);
  request.evaluations = job.scene.evaluations;
  request.ranks = static_cast<int>(session.row_shares().size());
  request.row_shares = session.row_shares();
  request.head_shares = session.head_shares();
  request.exchange = session.options().exchange;
  request.precision = session.precision();
  request.profile = session.vae_profile();
  request.row_chunk = session.options().row_chunk;
  return make_run_plan(request);
}

}  // namespace h3
