// Weights on their way from files to a GPU, each leg apart: files (or a seed) into the node's window, page-locking the
// window, and its copies to the GPU before and after that.
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>

#include "base/clock.h"
#include "bench/benches.h"
#include "render/partition_use.h"
#include "render/weight_lock.h"
#include "weights/host_memory.h"

namespace h3 {

namespace {

// Bytes of a file that are in the page cache.
std::size_t cached_bytes(int fd, std::size_t bytes) {
  void* mapped = ::mmap(nullptr, bytes, PROT_READ, MAP_SHARED, fd, 0);
  if (mapped == MAP_FAILED) return 0;
  const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  std::vector<unsigned char> there((bytes + page - 1) / page);
  const int status = ::mincore(mapped, bytes, there.data());
  ::munmap(mapped, bytes);
  if (status != 0) return 0;
  return page * static_cast<std::size_t>(std::count_if(there.begin(), there.end(), [](auto c) { return c & 1; }));
}

// Asks the system to forget the files' pages; the share of them that it kept all the same.
double drop_from_cache(const FileSource& files) {
  std::size_t kept = 0, all = 0;
  for (const SafetensorsFile& file : files.files()) {
    const int fd = ::open(file.path().c_str(), O_RDONLY | O_CLOEXEC);
    if (fd < 0) continue;
    (void)::fdatasync(fd);  // pages that are not on the disk yet cannot be forgotten
    (void)::posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
    kept += cached_bytes(fd, file.stamp().size);
    all += file.stamp().size;
    ::close(fd);
  }
  return all > 0 ? static_cast<double>(kept) / static_cast<double>(all) : 0;
}

class WeightsBench {
 public:
  WeightsBench(Bench& bench, Component component, BenchTable& table)
      : bench_(bench),
        component_(component),
        table_(table),
        memory_(
            make_node_memory(bench.session().cluster().node_comm(), {.scratch = bench.session().options().scratch})) {}

  void run() {
    Session& s = bench_.session();
    const Partition partition = opened_partitions(s.model()).front();
    if (const FileSource* files = s.model().files(component_, partition)) {
      if (memory_->rank() == 0) {
        const double kept = drop_from_cache(*files);
        if (kept > 0.01) table_.note(fmt::format("cold: the system kept {:.0f} % of the files in memory", kept * 100));
      }
      fill("files, cold", partition, false);
      fill("files, warm", partition, true);
    } else {
      fill("a seed", partition, true);
    }
  }

 private:
  // Loads the component; with `use`, also takes its window to the GPU.
  void fill(const std::string& from, Partition partition, bool use) {
    Session& s = bench_.session();
    LoadOptions load;
    load.precision = s.precision();
    load.vae_profile = s.vae_profile();
    load.partition = partition;
    bench_.largest(0);  // all ranks begin together
    const double start = steady_seconds();
    double filled = start;
    load.filled = [&](const WeightBlock& block) -> std::shared_ptr<void> {
      filled = steady_seconds();
      add(fmt::format("{} from {} into {}", name_of(component_), from, block.place()), filled - start, block.bytes());
      if (use && bench_.machine().place() == Place::device) copy_and_lock(block);
      return nullptr;
    };
    load_component(s.model(), component_, load, *memory_);
  }

  void copy_and_lock(const WeightBlock& block) {
    copy(block, "window to GPU, not page-locked");
    auto lock = WeightLock::start(bench_.machine(), block, std::string(name_of(component_)), true);
    const WeightLock::Outcome outcome = lock ? lock->wait() : WeightLock::Outcome{};
    add("page-locking the window", outcome.seconds, outcome.bytes);
    copy(block, "window to GPU, page-locked");
    const double start = steady_seconds();
    lock.reset();
    add("unlocking it", steady_seconds() - start, outcome.bytes);
  }

  // The whole window, piece after piece into one buffer.
  void copy(const WeightBlock& block, const std::string& what) {
    constexpr std::size_t kPiece = std::size_t{1} << 30;
    Machine& machine = bench_.machine();
    const Buffer there(machine, std::min(kPiece, block.bytes()), machine.place());
    BenchRow row = bench_.time(what, [&] {
      for (std::size_t at = 0; at < block.bytes(); at += kPiece) {
        const auto bytes = static_cast<std::int64_t>(std::min(kPiece, block.bytes() - at));
        machine.copy(bench_.queue(), Tensor(block.data() + at, {bytes}, DType::i8), there.tensor({bytes}, DType::i8));
      }
    });
    row.bytes = static_cast<double>(block.bytes());
    table_.add(std::move(row));
  }

  // A leg that is taken once; of several ranks the slowest counts.
  void add(const std::string& what, double seconds, std::size_t bytes) {
    const double slowest = bench_.largest(seconds);
    BenchRow row;
    row.what = what;
    row.time = {slowest, slowest, slowest, 1};
    row.bytes = static_cast<double>(bytes);
    table_.add(std::move(row));
  }

  Bench& bench_;
  Component component_;
  BenchTable& table_;
  std::unique_ptr<WeightMemory> memory_;
};

std::string room_in(const char* folder) {
  struct statvfs s {};
  if (::statvfs(folder, &s) != 0) return "none";
  return bytes_in_words(static_cast<std::uint64_t>(s.f_bavail) * s.f_frsize);
}

}  // namespace

void bench_weights(Bench& bench, const std::vector<Component>& components, BenchTable& table) {
  const HostMemory host = host_memory();
  table.note(fmt::format("host memory: {} available ({}), /dev/shm {} free", bytes_in_words(host.available), host.limit,
                         room_in("/dev/shm")));
  for (const Component component : components) WeightsBench(bench, component, table).run();
}

}  // namespace h3
