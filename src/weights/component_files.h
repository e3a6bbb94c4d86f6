// Opens the files of one component and checks every header against the plan before a single weight is read: missing,
// unexpected, wrong shape, wrong dtype, damaged files and non-finite norms, all reported together (DESIGN 7).
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "weights/tensor_source.h"

namespace h3 {

// What was found wrong, over all components; one message in the end.
class Problems {
 public:
  void add(const std::filesystem::path& where, const std::string& what) {
    lines_.push_back(where.string() + ": " + what);
  }
  void add(const std::string& line) { lines_.push_back(line); }
  std::size_t count() const { return lines_.size(); }
  // UserError with all of them, when there are any.
  void throw_if_any(const std::string& title) const;

 private:
  std::vector<std::string> lines_;
};

// Opens `folder` (single file, or shards with an index) and checks headers and small values. `notes` receives what a
// user should know, such as dtypes that are converted. Returns null when there were problems.
std::shared_ptr<const FileSource> open_component(const ModelConfig& config, const ComponentPlan& plan, Layout layout,
                                                 const std::filesystem::path& folder, Problems& problems,
                                                 std::vector<std::string>& notes);

// Reads the small tensors that must be finite (norms, scales, magnitudes) and those whose values are known (filters),
// and reports the wrong ones; part of open_component.
void check_values(const ComponentPlan& plan, const TensorSource& source, const std::filesystem::path& folder,
                  Problems& problems, std::vector<std::string>& notes);

}  // namespace h3
