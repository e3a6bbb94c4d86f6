// Who may render a scene: the holder of NAME.claim in the output folder, a file that only one process can create. No
// server is needed, and runs on different nodes need nothing in common but the folder. A claim whose process is gone,
// or that nobody refreshed for a minute of the observer's own clock, is taken over; an owner that was merely slow then
// finds out before it gives any file its final name (still_mine).
#pragma once

#include <condition_variable>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "render/claim_record.h"

namespace h3 {

struct ClaimOptions {
  double heartbeat_seconds = 10;   // how often an owner refreshes its claim
  double stale_seconds = 60;       // for how long an observer sees no refresh before it takes over
  std::vector<std::string> batch;  // all scenes of this run
  std::map<std::string, std::vector<std::string>> parents;  // of those that take frames of other scenes
  std::function<double()> clock;  // seconds of a clock that only runs forward; tests set their own
};

// A claim that this process holds, kept fresh by a thread until it is released.
class Claim {
 public:
  // Releases.
  ~Claim();
  Claim(const Claim&) = delete;
  Claim& operator=(const Claim&) = delete;

  // Reads the file: whether it still bears this claim's nonce. Any thread may call. Ask right before a final rename.
  bool still_mine() const;

  // What `status` shows; written within a second.
  void set_status(const ClaimStatus& status);

  // Stops refreshing and removes the file, if it is still this claim's. Later calls do nothing.
  void release();

  const ClaimOwner& owner() const { return record_.owner; }

 private:
  friend class ClaimDesk;
  Claim(std::filesystem::path path, int fd, ClaimRecord record, double heartbeat_seconds);
  void beat();
  void refresh();

  std::filesystem::path path_;
  int fd_;
  std::size_t capacity_;
  double heartbeat_seconds_;
  ClaimRecord record_;  // its changing parts are the thread's
  std::mutex mutex_;
  std::condition_variable changed_;
  ClaimStatus status_;
  bool status_new_ = false, leaving_ = false, warned_ = false;
  std::thread thread_;
};

// Takes claims in one output folder and remembers what it saw of others'.
class ClaimDesk {
 public:
  ClaimDesk(std::filesystem::path folder, ClaimOptions options);

  // The claim of the scene, or nothing while another process holds it (`holder` tells which). Never waits: a claim of
  // unknown owner must be seen unchanged by calls at least stale_seconds apart. Throws SceneError where no file can be
  // made in the folder.
  std::unique_ptr<Claim> try_claim(const std::string& scene);

  // The record of the claim that the last try_claim of this scene met, in words: "host node7, process 123, job 55".
  std::string holder(const std::string& scene) const;

 private:
  struct Seen {
    ClaimSighting sighting;
    double since = 0;
  };
  std::unique_ptr<Claim> create(const std::string& scene, const std::filesystem::path& path);
  std::string why_free(const std::string& scene, const ClaimSighting& sighting);
  bool take_away(const std::filesystem::path& path, const ClaimSighting& sighting);

  std::filesystem::path folder_;
  ClaimOptions options_;
  std::map<std::string, Seen> seen_;
};

}  // namespace h3
