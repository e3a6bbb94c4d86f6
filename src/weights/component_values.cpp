#include <cmath>
#include <cstring>

#include "base/error.h"
#include "weights/component_files.h"
#include "weights/convert.h"
#include "weights/worker_threads.h"

namespace h3 {

static bool must_be_finite(Role role) {
  switch (role) {
    case Role::norm:
    case Role::norm_bias:
    case Role::layer_scale:
    case Role::snake:
    case Role::snake_log:
    case Role::magnitude:
    case Role::filter:
    case Role::frequencies:
      return true;
    default:
      return false;
  }
}

// Stored filters must be the designed one (spec/vae.md 17), stored frequencies the computed ones (spec/dit.md 2.7).
static void compare_known(const PlannedTensor& t, const float* found, std::string* problem, std::string* note) {
  if (t.role == Role::frequencies && std::memcmp(found, t.values.data(), t.bytes()) != 0)
    *note = fmt::format("{} differs from the computed values; the file's are used", t.name);
  if (t.role != Role::filter) return;
  for (std::size_t i = 0; i < t.values.size(); ++i)
    if (std::abs(found[i] - t.values[i]) > 1e-6f)
      *problem = fmt::format("tensor {} holds {} at {}, expected {}", t.name, found[i], i, t.values[i]);
}

static void check_tensor(const PlannedTensor& t, const TensorSource& source, std::string* problem, std::string* note) {
  const std::vector<std::byte> data = source.read(t);
  const std::int64_t at = find_non_finite(data.data(), t.dtype, t.shape.elements());
  if (at >= 0)
    *problem = fmt::format("tensor {} holds a NaN or infinite value at {}", t.name, at);
  else if (!t.values.empty())
    compare_known(t, reinterpret_cast<const float*>(data.data()), problem, note);
}

void check_values(const ComponentPlan& plan, const TensorSource& source, const std::filesystem::path& folder,
                  Problems& problems, std::vector<std::string>& notes) {
  const std::size_t n = plan.tensors.size();
  std::vector<std::string> found(n), noted(n);
  // Small reads from many places: several at once, since a network file system answers each in its own time.
  run_tasks(n, 8, [&](std::size_t i) {
    if (must_be_finite(plan.tensors[i].role)) check_tensor(plan.tensors[i], source, &found[i], &noted[i]);
  });
  for (std::size_t i = 0; i < n; ++i) {
    if (!found[i].empty()) problems.add(folder, found[i]);
    if (!noted[i].empty()) notes.push_back(folder.string() + ": " + noted[i]);
  }
}

}  // namespace h3
