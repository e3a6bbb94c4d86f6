#include "render/claim.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>

#include "base/clock.h"
#include "base/error.h"
#include "base/helper_thread.h"
#include "base/log.h"

namespace h3 {

namespace fs = std::filesystem;

namespace {

constexpr std::size_t kLongestStage = 40;  // keeps the text within its capacity

std::string reason() {
  return std::generic_category().message(errno);
}

bool write_whole(int fd, const std::string& text) {
  std::size_t done = 0;
  while (done < text.size()) {
    const ssize_t n = ::pwrite(fd, text.data() + done, text.size() - done, static_cast<off_t>(done));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return false;
    done += static_cast<std::size_t>(n);
  }
  return true;
}

// Whoever moves or removes a claim file holds this lock on it, and checks under the lock that the path still leads to
// it, so that nobody moves a claim that was created meanwhile. False only when somebody else holds the lock: a file
// system without locks leaves the check of the nonce alone.
bool lock_file(int fd) {
  return ::flock(fd, LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK;
}

bool leads_to(const fs::path& path, int fd) {
  struct stat by_path {
  }, by_fd{};
  return ::stat(path.c_str(), &by_path) == 0 && ::fstat(fd, &by_fd) == 0 && by_path.st_ino == by_fd.st_ino &&
         by_path.st_dev == by_fd.st_dev;
}

bool same_nonce(const ClaimSighting& a, const ClaimSighting& b) {
  return a.record.has_value() == b.record.has_value() && (!a.record || a.record->owner.nonce == b.record->owner.nonce);
}

// Gives a claim file its name again, unless there is a new one of that name.
void put_back(const fs::path& aside, const fs::path& path) {
  if (::link(aside.c_str(), path.c_str()) == 0 || errno == EEXIST) return;
  std::error_code error;
  if (!fs::exists(path, error)) fs::rename(aside, path, error);  // a file system without hard links
}

}  // namespace

// ---- a claim of this process
// ------------------------------------------------------------------------------------------

Claim::Claim(fs::path path, int fd, ClaimRecord record, double heartbeat_seconds)
    : path_(std::move(path)),
      fd_(fd),
      capacity_(claim_text(record).size()),
      heartbeat_seconds_(heartbeat_seconds),
      record_(std::move(record)) {
  thread_ = start_helper_thread([this] { beat(); });
}

Claim::~Claim() {
  release();
}

bool Claim::still_mine() const {
  const auto sighting = look_at_claim(path_);
  return sighting && sighting->record && sighting->record->owner.nonce == record_.owner.nonce;
}

void Claim::set_status(const ClaimStatus& status) {
  {
    const std::lock_guard lock(mutex_);
    status_ = status;
    status_.stage.resize(std::min(status_.stage.size(), kLongestStage));
    status_new_ = true;
  }
  changed_.notify_all();
}

void Claim::beat() {
  using Seconds = std::chrono::duration<double>;
  constexpr Seconds kShortest(0.5);  // between two writes, however often the status changes
  std::unique_lock lock(mutex_);
  while (!leaving_) {
    changed_.wait_for(lock, Seconds(heartbeat_seconds_), [&] { return leaving_ || status_new_; });
    if (leaving_) return;
    record_.status = status_;
    status_new_ = false;
    lock.unlock();
    refresh();
    lock.lock();
    changed_.wait_for(lock, std::min(kShortest, Seconds(heartbeat_seconds_)), [&] { return leaving_; });
  }
}

// Writes in place through the descriptor of the file that was created: after a takeover this reaches the old file,
// which has another name or none, and never the new owner's.
void Claim::refresh() {
  ++record_.beat;
  const bool written = write_whole(fd_, claim_text(record_, capacity_));
  const bool touched = ::futimens(fd_, nullptr) == 0;
  if ((written && touched) || warned_) return;
  warned_ = true;
  spdlog::warn("{}: cannot be refreshed, another run may take the scene over: {}", path_.string(), reason());
}

void Claim::release() {
  {
    const std::lock_guard lock(mutex_);
    leaving_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
  if (fd_ < 0) return;
  try {
    if (lock_file(fd_) && leads_to(path_, fd_) && still_mine()) ::unlink(path_.c_str());
  } catch (const SceneError& e) {
    spdlog::warn("{}", e.what());
  }
  ::close(fd_);
  fd_ = -1;
}

// ---- claims of others
// -------------------------------------------------------------------------------------------------

ClaimDesk::ClaimDesk(fs::path folder, ClaimOptions options) : folder_(std::move(folder)), options_(std::move(options)) {
  if (!options_.clock) options_.clock = steady_seconds;
}

std::unique_ptr<Claim> ClaimDesk::try_claim(const std::string& scene) {
  constexpr int kTries = 4;  // each time another process may be quicker
  const fs::path path = claim_path(folder_, scene);
  for (int i = 0; i < kTries; ++i) {
    if (auto claim = create(scene, path)) return claim;
    const auto sighting = look_at_claim(path);
    if (!sighting) continue;
    const std::string why = why_free(scene, *sighting);
    if (why.empty() || !take_away(path, *sighting)) return nullptr;
    spdlog::warn("{}: the claim of {} is taken over: {}", scene, holder(scene), why);
  }
  return nullptr;
}

std::unique_ptr<Claim> ClaimDesk::create(const std::string& scene, const fs::path& path) {
  const int fd = ::open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
  if (fd < 0 && errno == EEXIST) return nullptr;
  if (fd < 0) throw SceneError(fmt::format("{}: cannot be made: {}", path.string(), reason()));
  seen_.erase(scene);
  ClaimRecord record;
  record.owner = this_process();
  record.scene = scene;
  record.batch = options_.batch;
  record.parents = options_.parents;
  record.started = wall_seconds();
  if (!write_whole(fd, claim_text(record))) {
    const std::string why = reason();
    ::unlink(path.c_str());
    ::close(fd);
    throw SceneError(fmt::format("{}: cannot be written: {}", path.string(), why));
  }
  return std::unique_ptr<Claim>(new Claim(path, fd, std::move(record), options_.heartbeat_seconds));
}

// Why the claim may be taken over, or "".
std::string ClaimDesk::why_free(const std::string& scene, const ClaimSighting& sighting) {
  const double now = options_.clock();
  const auto [entry, is_new] = seen_.try_emplace(scene, Seen{sighting, now});
  Seen& seen = entry->second;
  // Any change counts as life, also a time of change that moved backwards with some clock.
  if (!is_new && !seen.sighting.same_as(sighting)) seen = {sighting, now};
  if (sighting.record && state_of(sighting.record->owner) == OwnerState::gone) return "that process is gone";
  if (now - seen.since < options_.stale_seconds) return "";
  return fmt::format("not refreshed for {:.0f} s", now - seen.since);
}

// Moves the claim file that was judged out of the way. False when another process was quicker or the claim came alive.
bool ClaimDesk::take_away(const fs::path& path, const ClaimSighting& judged) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return errno == ENOENT;
  bool taken = false;
  if (lock_file(fd) && leads_to(path, fd)) {
    const auto now = look_at_claim(path);
    const fs::path aside =
        path.parent_path() / fmt::format(".{}.{}", path.filename().string(), this_process().nonce.substr(0, 16));
    if (now && now->same_as(judged) && ::rename(path.c_str(), aside.c_str()) == 0) {
      // Without locks the file may have been replaced since; a live claim goes back.
      const auto moved = look_at_claim(aside);
      taken = moved && same_nonce(*moved, judged);
      if (!taken) put_back(aside, path);
      ::unlink(aside.c_str());
    }
  }
  ::close(fd);
  return taken;
}

std::string ClaimDesk::holder(const std::string& scene) const {
  const auto found = seen_.find(scene);
  if (found == seen_.end() || !found->second.sighting.record) return "an unknown process";
  const ClaimOwner& owner = found->second.sighting.record->owner;
  return fmt::format("host {}, process {}{}", owner.host, owner.pid, owner.job.empty() ? "" : ", job " + owner.job);
}

}  // namespace h3
