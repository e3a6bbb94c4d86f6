#include "render/claim_record.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <cstdlib>
#include <fstream>
#include <random>
#include <sstream>
#include <thread>

#include "base/error.h"

namespace h3 {

namespace fs = std::filesystem;

NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(ClaimOwner, host, boot_id, pid_namespace, pid, pid_start, job, nonce)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(ClaimStatus, stage, step, steps, seconds_per_step, memory_bytes, ranks)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(ClaimRecord, scene, owner, batch, parents, started, beat, status)

namespace {

std::string boot_id() {
  std::string id;
  std::ifstream("/proc/sys/kernel/random/boot_id") >> id;
  return id;
}

std::string pid_namespace() {
  std::error_code error;
  return fs::read_symlink("/proc/self/ns/pid", error).string();
}

struct ProcessFacts {
  char state = 'X';
  std::uint64_t start = 0;
};

// proc(5): state is the third field of /proc/PID/stat, start time the 22nd; the second may hold blanks and brackets.
std::optional<ProcessFacts> facts_of(std::int64_t pid) {
  std::ifstream file(fmt::format("/proc/{}/stat", pid));
  std::string line;
  if (!std::getline(file, line)) return std::nullopt;
  std::istringstream rest(line.substr(std::min(line.rfind(')') + 1, line.size())));
  ProcessFacts facts;
  std::string skipped;
  rest >> facts.state;
  for (int field = 4; field < 22; ++field) rest >> skipped;
  rest >> facts.start;
  return facts;
}

std::string new_nonce() {
  std::random_device random;
  std::string nonce;
  for (int i = 0; i < 4; ++i) nonce += fmt::format("{:08x}", random());
  return nonce;
}

std::string job_of_batch_system() {
  const auto variable = [](const char* name) {
    const char* value = std::getenv(name);
    return std::string(value ? value : "");
  };
  const std::string array = variable("SLURM_ARRAY_JOB_ID"), task = variable("SLURM_ARRAY_TASK_ID");
  return !array.empty() && !task.empty() ? array + "_" + task : variable("SLURM_JOB_ID");
}

std::string read_descriptor(int fd) {
  std::string text;
  std::array<char, 4096> part;
  while (true) {
    const ssize_t n = ::pread(fd, part.data(), part.size(), static_cast<off_t>(text.size()));
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return text;
    text.append(part.data(), static_cast<std::size_t>(n));
  }
}

}  // namespace

ClaimOwner this_process() {
  ClaimOwner owner;
  std::array<char, 256> host{};
  ::gethostname(host.data(), host.size() - 1);
  owner.host = host.data();
  owner.boot_id = boot_id();
  owner.pid_namespace = pid_namespace();
  owner.pid = ::getpid();
  owner.pid_start = facts_of(owner.pid).value_or(ProcessFacts{}).start;
  owner.job = job_of_batch_system();
  owner.nonce = new_nonce();
  return owner;
}

OwnerState state_of(const ClaimOwner& owner) {
  const std::string boot = boot_id();
  if (boot.empty() || owner.boot_id != boot || owner.pid_namespace != pid_namespace()) return OwnerState::unknown;
  const auto facts = facts_of(owner.pid);
  if (!facts || facts->state == 'Z' || facts->state == 'X' || facts->start != owner.pid_start) return OwnerState::gone;
  return OwnerState::alive;
}

fs::path claim_path(const fs::path& folder, const std::string& scene) {
  return folder / (scene + ".claim");
}

std::string claim_text(const ClaimRecord& record, std::size_t capacity) {
  constexpr std::size_t kBlock = 4096, kRoomForStatus = 1024;
  const nlohmann::json j = record;
  std::string text = j.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  if (capacity == 0) capacity = (text.size() + kRoomForStatus + kBlock) / kBlock * kBlock;
  CHECK_LT(text.size(), capacity);
  text.resize(capacity - 1, ' ');
  return text + "\n";
}

std::optional<ClaimRecord> claim_from_text(const std::string& text) {
  try {
    return nlohmann::json::parse(text).get<ClaimRecord>();
  } catch (const nlohmann::json::exception&) {
    return std::nullopt;
  }
}

std::optional<ClaimSighting> look_at_claim(const fs::path& path) {
  // A text that does not parse may be one that is being written right now.
  constexpr int kLooks = 3;
  std::optional<ClaimSighting> sighting;
  for (int look = 0; look < kLooks; ++look) {
    if (look > 0) std::this_thread::sleep_for(std::chrono::milliseconds(2));
    const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
    if (fd < 0 && errno == ENOENT) return std::nullopt;
    if (fd < 0)
      throw SceneError(fmt::format("{}: cannot be read: {}", path.string(), std::generic_category().message(errno)));
    struct stat info {};
    ::fstat(fd, &info);
    sighting.emplace();
    sighting->text = read_descriptor(fd);
    ::close(fd);
    sighting->inode = info.st_ino;
    sighting->mtime_ns = std::int64_t{info.st_mtim.tv_sec} * 1'000'000'000 + info.st_mtim.tv_nsec;
    sighting->record = claim_from_text(sighting->text);
    if (sighting->record) break;
  }
  return sighting;
}

}  // namespace h3
