#include "slurm/slurm_cluster.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <random>
#include <sstream>
#include <thread>

#include "base/error.h"
#include "cli/program.h"

namespace h3::test {

namespace {

constexpr double kStartSeconds = 30;

void pause() {
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
}

// A daemon's full path, or "".
std::string daemon_path(const std::string& name) {
  for (const char* folder : {"/usr/sbin/", "/usr/local/sbin/", "/usr/bin/", "/usr/local/bin/"})
    if (fs::exists(folder + name)) return folder + name;
  return "";
}

std::string short_host() {
  std::array<char, 256> host{};
  ::gethostname(host.data(), host.size() - 1);
  const std::string name = host.data();
  return name.substr(0, name.find('.'));
}

// Ports that nobody listens on. All are held until all are known, so that they differ.
std::vector<int> free_ports(int count) {
  std::vector<int> sockets, ports;
  for (int i = 0; i < count; ++i) {
    const int s = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t length = sizeof address;
    ::bind(s, reinterpret_cast<const sockaddr*>(&address), length);
    ::getsockname(s, reinterpret_cast<sockaddr*>(&address), &length);
    sockets.push_back(s);
    ports.push_back(ntohs(address.sin_port));
  }
  for (const int s : sockets) ::close(s);
  return ports;
}

std::string trimmed(const std::string& text) {
  const std::size_t begin = text.find_first_not_of(" \n"), end = text.find_last_not_of(" \n");
  return begin == text.npos ? "" : text.substr(begin, end - begin + 1);
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);)
    if (!trimmed(line).empty()) lines.push_back(trimmed(line));
  return lines;
}

// The value of NAME=VALUE in scontrol's output, or "".
std::string field(const std::string& text, const std::string& name) {
  const std::string start = name + "=";
  const std::size_t at = text.find(start);
  if (at == text.npos) return "";
  const std::size_t from = at + start.size();
  return text.substr(from, text.find_first_of(" \n", from) - from);
}

}  // namespace

SlurmCluster::SlurmCluster() {
  try {
    reason_ = start();
  } catch (const std::exception& e) {
    reason_ = e.what();
  }
}

SlurmCluster::~SlurmCluster() {
  if (reason_.empty()) command({"scancel", "--user", "root"});
}

std::string SlurmCluster::start() {
  if (::geteuid() != 0) return "slurmd needs root";
  for (const char* name : {"munged", "slurmctld", "slurmd", "sbatch"})
    if (daemon_path(name).empty()) return std::string(name) + " is not installed (Debian's slurm-wlm and munge)";
  const std::string host = short_host(), folder = folder_.path();
  ::chmod(folder.c_str(), 0755);
  configure(host);
  munge_ = std::make_unique<Process>(
      Words{daemon_path("munged"), "--foreground", "--force", "--socket=" + folder + "/munge.socket",
            "--key-file=" + folder + "/munge.key", "--pid-file=" + folder + "/munged.pid",
            "--log-file=" + folder + "/munged.log", "--seed-file=" + folder + "/munge.seed"});
  const double started = now();
  while (!fs::exists(folder + "/munge.socket")) {
    if (!munge_->running() || now() - started > kStartSeconds) return "munged does not start: " + munge_->err();
    pause();
  }
  const std::string configuration = folder + "/slurm.conf";
  controller_ = std::make_unique<Process>(Words{daemon_path("slurmctld"), "-D", "-f", configuration});
  node_ = std::make_unique<Process>(Words{daemon_path("slurmd"), "-D", "-f", configuration, "-N", host});
  while (trimmed(command({"sinfo", "--noheader", "--format=%T"}).out) != "idle") {
    if (!controller_->running()) return "slurmctld does not start: " + controller_->err();
    if (!node_->running()) return "slurmd does not start: " + node_->err();
    if (now() - started > kStartSeconds) return "the node does not become idle: " + node_->err();
    pause();
  }
  return "";
}

void SlurmCluster::configure(const std::string& host) const {
  const std::string folder = folder_.path();
  for (const char* name : {"state", "spool"}) fs::create_directories(folder_.path() / name);
  std::random_device random;
  std::string key;
  for (int i = 0; i < 256; ++i) key += fmt::format("{:08x}", random());
  write_text(folder + "/munge.key", key);
  ::chmod((folder + "/munge.key").c_str(), 0600);
  const std::vector<int> ports = free_ports(2);
  // A requeued job waits until the credential of its last run has expired (cred_expire): seconds here, not minutes.
  write_text(folder + "/slurm.conf", fmt::format(R"(ClusterName=h3test
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={controller}
SlurmdPort={node}
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket,cred_expire=5
SlurmUser=root
SlurmdUser=root
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.pid
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SchedulerType=sched/builtin
SchedulerParameters=sched_interval=1
SlurmdParameters=config_overrides
ReturnToService=2
KillWait=10
MailProg=/bin/true
NodeName={host} NodeAddr=127.0.0.1 CPUs=6 State=UNKNOWN
PartitionName=test Nodes=ALL Default=YES MaxTime=INFINITE State=UP
)",
                                                 fmt::arg("host", host), fmt::arg("controller", ports[0]),
                                                 fmt::arg("node", ports[1]), fmt::arg("folder", folder)));
  // Since 23.11 slurmd looks for control groups even where no plugin uses them, and can be told not to.
  int year = 0, month = 0;
  std::sscanf(command({daemon_path("slurmd"), "-V"}).out.c_str(), "slurm %d.%d", &year, &month);
  if (100 * year + month >= 2311) write_text(folder + "/cgroup.conf", "CgroupPlugin=disabled\n");
}

Result SlurmCluster::command(const Words& words) const {
  return run(words, {{{"SLURM_CONF", folder_.path() / "slurm.conf"}}, ".", 180});
}

std::string SlurmCluster::submit(const fs::path& folder, const Words& options_and_script,
                                 const std::map<std::string, std::string>& environment) const {
  const bool array = std::any_of(options_and_script.begin(), options_and_script.end(),
                                 [](const std::string& word) { return word.starts_with("--array"); });
  Words words{"sbatch", "--parsable", "--output", folder / (array ? "job-%A_%a.out" : "job-%j.out")};
  words.insert(words.end(), options_and_script.begin(), options_and_script.end());
  std::map<std::string, std::string> all = environment;
  all["SLURM_CONF"] = folder_.path() / "slurm.conf";
  all["H3RENDER"] = h3render_path();
  all["XDG_CACHE_HOME"] = folder / "cache";  // the job outlives sbatch and its folder
  const Result result = run(words, {all, folder, 180});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  return trimmed(result.out);
}

int SlurmCluster::restarts(const std::string& job) const {
  return std::atoi(field(command({"scontrol", "show", "job", job}).out, "Restarts").c_str());
}

std::vector<std::string> SlurmCluster::wait(const std::string& job, double limit) const {
  const double started = now();
  while (!lines_of(command({"squeue", "--noheader", "--jobs", job, "--format=%T"}).out).empty()) {
    if (now() - started > limit) {
      ADD_FAILURE() << "job " << job << " did not end within " << limit << " s\n"
                    << command({"scontrol", "show", "job", job}).out;
      break;
    }
    pause();
  }
  std::vector<std::string> states;
  for (const std::string& line : lines_of(command({"scontrol", "--oneliner", "show", "job", job}).out))
    states.push_back(field(line, "JobState"));
  return states;
}

bool SlurmCluster::has_mpi(const std::string& kind) const {
  const Result list = command({"srun", "--mpi=list"});
  const std::vector<std::string> lines = lines_of(list.out + list.err);
  return std::any_of(lines.begin(), lines.end(), [&](const std::string& line) {
    return line == kind || line == "\t" + kind || line.ends_with("\t" + kind);
  });
}

}  // namespace h3::test
