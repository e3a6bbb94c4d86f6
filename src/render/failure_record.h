// What tells of a scene that failed: X.failed.json in the output folder, with the run's id, so that other groups of the
// run leave the scene alone.
#pragma once

#include <filesystem>
#include <string>

#include "render/session.h"

namespace h3 {

std::filesystem::path failure_path(const std::filesystem::path& folder, const std::string& scene);
// Logs the error and writes the record. A folder that takes no file is logged: the run goes on. Any thread may call.
void record_failure(const Session& session, const std::string& scene, const std::string& error);

}  // namespace h3
