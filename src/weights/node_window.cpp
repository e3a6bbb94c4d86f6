#include "weights/node_window.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <random>

#include "base/error.h"
#include "parallel/mpi_call.h"
#include "weights/host_memory.h"

namespace h3 {

namespace fs = std::filesystem;

namespace {

// A mapping and nothing else: of a file that may have no name any more, or of anonymous memory (fd -1).
class MappedBlock : public WeightBlock {
 public:
  MappedBlock(int fd, std::size_t bytes, std::string place, bool on_disk)
      : bytes_(bytes), place_(std::move(place)), on_disk_(on_disk) {
    if (bytes == 0) return;
    data_ = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, fd < 0 ? MAP_PRIVATE | MAP_ANONYMOUS : MAP_SHARED, fd, 0);
    if (data_ == MAP_FAILED)
      throw UserError(place_, "", "",
                      fmt::format("cannot be mapped ({}): {}", bytes_in_words(bytes), std::strerror(errno)));
    // Large pages where the system has them make uploads to a GPU cheaper; without them nothing changes.
    ::madvise(data_, bytes, MADV_HUGEPAGE);
  }
  ~MappedBlock() override {
    if (bytes_ > 0) ::munmap(data_, bytes_);
  }
  MappedBlock(const MappedBlock&) = delete;
  MappedBlock& operator=(const MappedBlock&) = delete;
  std::byte* data() const override { return static_cast<std::byte*>(data_); }
  std::size_t bytes() const override { return bytes_; }
  std::string place() const override { return place_; }
  bool on_disk() const override { return on_disk_; }

 private:
  void* data_ = nullptr;
  std::size_t bytes_ = 0;
  std::string place_;
  bool on_disk_ = false;
};

// An open file that is closed, and removed while it still has a name, when it goes.
class SegmentFile {
 public:
  SegmentFile() = default;
  SegmentFile(const SegmentFile&) = delete;
  SegmentFile& operator=(const SegmentFile&) = delete;
  ~SegmentFile() { remove(); }
  // Makes a new file in `folder` with all its space. Empty, or the reason why that is impossible.
  std::string create(const fs::path& folder, std::size_t bytes);
  // Opens the file that another rank has made.
  std::string open(const fs::path& path, std::size_t bytes);
  void remove() {
    if (owned_) ::unlink(path_.c_str());
    if (fd_ >= 0) ::close(fd_);
    owned_ = false;
    fd_ = -1;
  }
  int fd() const { return fd_; }
  const fs::path& path() const { return path_; }

 private:
  std::string reserve(std::size_t bytes) const;
  int fd_ = -1;
  fs::path path_;
  bool owned_ = false;
};

constexpr std::string_view kSegmentStart = "h3render.";

// Removes this user's segments that a killed run left in `folder`. The maker of a segment holds a lock on it for as
// long as it has a name, and the lock goes with the process, whatever machine or container it was seen from.
void remove_abandoned(const fs::path& folder) {
  std::vector<fs::path> segments;
  std::error_code error;
  for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error))
    if (it->path().filename().string().starts_with(kSegmentStart)) segments.push_back(it->path());
  for (const fs::path& path : segments) {
    const int fd = ::open(path.c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW);
    struct stat s {};
    if (fd >= 0 && ::fstat(fd, &s) == 0 && S_ISREG(s.st_mode) && s.st_uid == ::geteuid() &&
        ::flock(fd, LOCK_EX | LOCK_NB) == 0)
      ::unlink(path.c_str());
    if (fd >= 0) ::close(fd);
  }
}

std::string SegmentFile::create(const fs::path& folder, std::size_t bytes) {
  remove_abandoned(folder);
  struct statvfs s {};
  if (::statvfs(folder.c_str(), &s) != 0) return std::strerror(errno);
  const std::uint64_t free = static_cast<std::uint64_t>(s.f_bavail) * s.f_frsize;
  if (free < bytes) return fmt::format("only {} free", bytes_in_words(free));
  std::random_device random;
  path_ = folder / fmt::format("{}{}.{:08x}{:08x}", kSegmentStart, ::getpid(), random(), random());
  // What shm_open does, but in any folder.
  fd_ = ::open(path_.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
  if (fd_ < 0) return std::strerror(errno);
  owned_ = true;
  // Where there are no locks, none is found abandoned. Before this one, another run may have found this file so.
  struct stat made {};
  (void)::flock(fd_, LOCK_EX);
  if (::fstat(fd_, &made) != 0) return std::strerror(errno);
  if (made.st_nlink > 0) return reserve(bytes);
  remove();
  return create(folder, bytes);
}

// Takes the space now: later, a full file system would kill the process that writes (SIGBUS).
std::string SegmentFile::reserve(std::size_t bytes) const {
  int error = 0;
  do error = ::posix_fallocate(fd_, 0, static_cast<off_t>(bytes));
  while (error == EINTR);
  return error == 0 ? "" : fmt::format("{} cannot be reserved: {}", bytes_in_words(bytes), std::strerror(error));
}

std::string SegmentFile::open(const fs::path& path, std::size_t bytes) {
  path_ = path;
  fd_ = ::open(path.c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW);
  struct stat s {};
  if (fd_ < 0 || ::fstat(fd_, &s) != 0) return std::strerror(errno);
  if (static_cast<std::uint64_t>(s.st_size) != bytes || s.st_uid != ::geteuid())
    return fmt::format("has {} bytes, expected {}; the ranks disagree", s.st_size, bytes);
  return "";
}

std::string needs(std::string_view what, std::size_t bytes) {
  return fmt::format("the {} needs {} of host memory", what, bytes_in_words(bytes));
}

// Shared and private memory alike come from what the host has available.
std::string shortage(std::size_t bytes) {
  const HostMemory host = host_memory();
  if (bytes <= host.available) return "";
  return fmt::format("{} has {} available", host.limit, bytes_in_words(host.available));
}

class PrivateMemory : public WeightMemory {
 public:
  int rank() const override { return 0; }
  int size() const override { return 1; }
  std::shared_ptr<WeightBlock> allocate(std::size_t bytes, std::string_view what) override {
    const std::string reason = shortage(bytes);
    if (!reason.empty()) throw UserError(needs(what, bytes), "", "", reason);
    return std::make_shared<MappedBlock>(-1, bytes, "private memory", false);
  }
  std::string join(std::string_view text) override { return std::string(text); }
};

class NodeMemory : public WeightMemory {
 public:
  NodeMemory(std::unique_ptr<NodeGroup> group, MemoryPlaces places)
      : group_(std::move(group)), places_(std::move(places)) {}
  int rank() const override { return group_->rank(); }
  int size() const override { return group_->size(); }

  std::shared_ptr<WeightBlock> allocate(std::size_t bytes, std::string_view what) override {
    // A single rank needs no name for its memory, and then /dev/shm may be as small as it likes.
    if (bytes == 0 || (size() == 1 && shortage(bytes + reserve()).empty()))
      return make_private_memory()->allocate(bytes, what);
    SegmentFile file;
    std::string problem = rank() == 0 ? create(file, bytes) : "";
    if (!problem.empty()) problem = needs(what, bytes) + ", and there is no room for it: " + problem;
    throw_if_any(problem);
    const std::string path = group_->gather(file.path().string())[0];
    if (rank() != 0) problem = file.open(path, bytes);
    if (!problem.empty()) problem = fmt::format("{}: {}", path, problem);
    std::shared_ptr<MappedBlock> block;
    if (problem.empty()) {
      try {
        const fs::path folder = fs::path(path).parent_path();
        block = std::make_shared<MappedBlock>(file.fd(), bytes, folder.string(), folder != places_.shm);
      } catch (const UserError& e) {
        problem = e.what();
      }
    }
    // Rank 0 keeps the name until every rank has the file open.
    throw_if_any(problem);
    return block;
  }

  std::string join(std::string_view text) override {
    std::string all;
    for (const std::string& t : group_->gather(text)) all += t;
    return all;
  }

 private:
  std::size_t reserve() const { return places_.scratch.empty() ? 0 : places_.reserve; }

  // Tries shared memory, then scratch; the reasons why neither will do.
  std::string create(SegmentFile& file, std::size_t bytes) const {
    std::string reasons = shortage(bytes + reserve());
    if (reasons.empty()) {
      reasons = file.create(places_.shm, bytes);
      if (reasons.empty()) return "";
      reasons = fmt::format("{}: {}", places_.shm.string(), reasons);
    }
    if (places_.scratch.empty()) return reasons + "; --scratch FOLDER takes it on a disk instead";
    file.remove();
    const std::string reason = file.create(places_.scratch, bytes);
    return reason.empty() ? "" : fmt::format("{}; {}: {}", reasons, places_.scratch.string(), reason);
  }

  // The first rank's problem, on every rank.
  void throw_if_any(const std::string& problem) {
    for (const std::string& p : group_->gather(problem))
      if (!p.empty()) throw UserError(p);
  }

  std::unique_ptr<NodeGroup> group_;
  MemoryPlaces places_;
};

class MpiNodeGroup : public NodeGroup {
 public:
  explicit MpiNodeGroup(MPI_Comm node) {
    H3_MPI(MPI_Comm_dup(node, &comm_));
    H3_MPI(MPI_Comm_rank(comm_, &rank_));
    H3_MPI(MPI_Comm_size(comm_, &size_));
  }
  ~MpiNodeGroup() override {
    int ended = 0;
    MPI_Finalized(&ended);
    if (!ended) MPI_Comm_free(&comm_);
  }
  MpiNodeGroup(const MpiNodeGroup&) = delete;
  MpiNodeGroup& operator=(const MpiNodeGroup&) = delete;
  int rank() const override { return rank_; }
  int size() const override { return size_; }
  std::vector<std::string> gather(std::string_view text) override {
    std::vector<std::string> all(static_cast<std::size_t>(size_));
    for (int r = 0; r < size_; ++r) {
      std::string& t = all[static_cast<std::size_t>(r)];
      if (r == rank_) t = text;
      int length = static_cast<int>(t.size());
      H3_MPI(MPI_Bcast(&length, 1, MPI_INT, r, comm_));
      t.resize(static_cast<std::size_t>(length));
      H3_MPI(MPI_Bcast(t.data(), length, MPI_CHAR, r, comm_));
    }
    return all;
  }

 private:
  MPI_Comm comm_ = MPI_COMM_NULL;
  int rank_ = 0, size_ = 1;
};

}  // namespace

std::unique_ptr<WeightMemory> make_private_memory() {
  return std::make_unique<PrivateMemory>();
}

std::unique_ptr<WeightMemory> make_node_memory(std::unique_ptr<NodeGroup> group, const MemoryPlaces& places) {
  return std::make_unique<NodeMemory>(std::move(group), places);
}

std::unique_ptr<WeightMemory> make_node_memory(MPI_Comm node, const MemoryPlaces& places) {
  return make_node_memory(std::make_unique<MpiNodeGroup>(node), places);
}

}  // namespace h3
