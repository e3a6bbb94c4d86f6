#include "media/local_file.h"

#include <cerrno>
#include <cstring>
#include <fstream>

#include "base/error.h"

namespace h3 {

namespace fs = std::filesystem;

std::string head_of_local_file(const fs::path& path, std::size_t most) {
  const auto refuse = [&](const std::string& why) { throw UserError(path.string(), "", "", why); };
  std::error_code ec;
  const fs::file_status status = fs::status(path, ec);
  // A path that was made absolute has lost one of the slashes of "http://".
  const bool is_url = path.string().find("://") != std::string::npos || path.string().find(":/") != std::string::npos;
  if (!fs::exists(status))
    refuse(is_url ? "is a URL; only local files are read" : "cannot be read: there is no such file");
  if (fs::is_directory(status)) refuse("is a folder, expected a file");
  if (!fs::is_regular_file(status)) refuse("is not a regular file");
  std::ifstream file(path, std::ios::binary);
  if (!file) refuse(fmt::format("cannot be read: {}", std::strerror(errno)));
  std::string head(most, '\0');
  file.read(head.data(), static_cast<std::streamsize>(most));
  head.resize(static_cast<std::size_t>(file.gcount()));
  if (head.empty()) refuse(file.bad() ? "cannot be read" : "is empty");
  return head;
}

}  // namespace h3
