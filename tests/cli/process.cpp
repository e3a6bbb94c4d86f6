#include "cli/process.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstring>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <thread>

extern char** environ;

namespace h3::test {

namespace fs = std::filesystem;

namespace {

constexpr const char* kMark = "H3RENDER_TEST_RUN";

// The settings of tools/mpi-env.sh. Ranks that wait give way: the cores are shared by several runs at once.
const std::map<std::string, std::string> mpi_environment{
    {"OMPI_ALLOW_RUN_AS_ROOT", "1"},
    {"OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1"},
    {"OMPI_MCA_rmaps_base_oversubscribe", "1"},
    {"OMPI_MCA_hwloc_base_binding_policy", "none"},
    {"PRTE_MCA_rmaps_default_mapping_policy", ":oversubscribe"},
    {"OMPI_MCA_btl_vader_single_copy_mechanism", "none"},
    {"OMPI_MCA_mpi_yield_when_idle", "1"},
    {"OMP_NUM_THREADS", "1"},
};

std::string content_of(const fs::path& file) {
  std::ifstream in(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

void pause() {
  std::this_thread::sleep_for(std::chrono::milliseconds(3));
}

std::vector<std::string> environment_of_run(const std::map<std::string, std::string>& more, const fs::path& own) {
  std::map<std::string, std::string> all;
  for (char** entry = environ; *entry; ++entry) {
    const std::string text = *entry;
    const auto equals = text.find('=');
    if (equals != text.npos) all[text.substr(0, equals)] = text.substr(equals + 1);
  }
  all["XDG_CACHE_HOME"] = own / "cache";
  for (const auto& [name, value] : mpi_environment) all[name] = value;
  for (const auto& [name, value] : more) all[name] = value;
  all[kMark] = own.filename();
  std::vector<std::string> list;
  for (const auto& [name, value] : all) list.push_back(name + "=" + value);
  return list;
}

std::vector<char*> pointers(std::vector<std::string>& texts) {
  std::vector<char*> list;
  for (std::string& text : texts) list.push_back(text.data());
  list.push_back(nullptr);
  return list;
}

// The processes whose environment has the entry "NAME=VALUE". A zombie has no environment any more.
std::vector<pid_t> processes_with(const std::string& entry) {
  std::vector<pid_t> found;
  std::error_code ec;
  for (fs::directory_iterator it("/proc", ec), end; !ec && it != end; it.increment(ec)) {
    const std::string name = it->path().filename().string();
    pid_t pid = 0;
    const auto [rest, error] = std::from_chars(name.data(), name.data() + name.size(), pid);
    if (error != std::errc() || rest != name.data() + name.size()) continue;
    const std::string environment = '\0' + content_of(it->path() / "environ");
    if (environment.find('\0' + entry + '\0') != environment.npos) found.push_back(pid);
  }
  return found;
}

}  // namespace

double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

Process::Process(const Words& words, const Surroundings& surroundings)
    : words_(words), limit_(surroundings.limit), mark_(output_.path().filename().string()), started_(now()) {
  std::vector<std::string> arguments = words,
                           environment = environment_of_run(surroundings.environment, output_.path());
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  const std::string out = output_.path() / "out", err = output_.path() / "err";
  posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, out.c_str(), O_WRONLY | O_CREAT | O_APPEND, 0600);
  posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, err.c_str(), O_WRONLY | O_CREAT | O_APPEND, 0600);
  posix_spawn_file_actions_addchdir_np(&actions, surroundings.folder.c_str());
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP);
  const int error = ::posix_spawnp(&pid_, arguments.at(0).c_str(), &actions, &attributes, pointers(arguments).data(),
                                   pointers(environment).data());
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&actions);
  if (error != 0) throw std::runtime_error(words.at(0) + " cannot be started: " + std::strerror(error));
}

Process::~Process() {
  kill_all();
}

bool Process::running() {
  if (!ended_) ended_ = ::waitpid(pid_, &status_, WNOHANG) == pid_;
  return !ended_;
}

double Process::age() const {
  return now() - started_;
}

std::string Process::err() const {
  return content_of(output_.path() / "err");
}

bool Process::wait_for_err(const std::string& text) {
  while (err().find(text) == std::string::npos) {
    if (!running() || age() > limit_) return err().find(text) != std::string::npos;
    pause();
  }
  return true;
}

std::vector<pid_t> Process::members() const {
  return processes_with(std::string(kMark) + "=" + mark_);
}

pid_t Process::rank(int number) const {
  const std::vector<pid_t> ours = members();
  for (const pid_t pid : processes_with("OMPI_COMM_WORLD_RANK=" + std::to_string(number)))
    if (std::find(ours.begin(), ours.end(), pid) != ours.end()) return pid;
  throw std::runtime_error("rank " + std::to_string(number) + " is not running");
}

void Process::kill_all() {
  if (!ended_) ::kill(pid_, SIGKILL);
  for (const pid_t pid : members()) ::kill(pid, SIGKILL);
  if (!ended_) ::waitpid(pid_, &status_, 0);
  ended_ = true;
}

Result Process::wait() {
  Result result;
  while (running() && age() < limit_) pause();
  result.seconds = age();
  if (running()) {
    result.timed_out = true;
    kill_all();
  }
  result.exit_code = WIFEXITED(status_) ? WEXITSTATUS(status_) : 128 + WTERMSIG(status_);
  result.out = content_of(output_.path() / "out");
  result.err = err();
  std::string line;
  for (const std::string& word : words_) line += " " + word;
  EXPECT_FALSE(result.timed_out) << "still running after " << limit_ << " s:" << line << "\n" << result.err;
  return result;
}

Result run(const Words& words, const Surroundings& surroundings) {
  return Process(words, surroundings).wait();
}

}  // namespace h3::test
