#include "render/failure_record.h"

#include "base/file.h"
#include "base/log.h"

namespace h3 {

std::filesystem::path failure_path(const std::filesystem::path& folder, const std::string& scene) {
  return folder / (scene + ".failed.json");
}

void record_failure(const Session& session, const std::string& scene, const std::string& error) {
  spdlog::error("{}: {}", scene, error);
  try {
    const nlohmann::ordered_json record{{"scene", scene}, {"error", error}, {"run", session.run_id()}};
    write_file_atomically(failure_path(session.options().output, scene), record.dump(2) + "\n");
  } catch (const SceneError& e) {
    spdlog::error("{}", e.what());
  }
}

}  // namespace h3
