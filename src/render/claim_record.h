// What stands in a claim file, NAME.claim: which process renders the scene, and how far it is. One JSON object, padded
// with blanks to a fixed size, so that the owner can rewrite it in place and a reader never sees it shorter.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

namespace h3 {

// A process, named so that no other process ever has the same name: numbers of processes are used again, and containers
// on one machine have their own, so boot, start time and pid namespace belong to it.
struct ClaimOwner {
  std::string host, boot_id, pid_namespace;
  std::int64_t pid = 0;
  std::uint64_t pid_start = 0;  // clock ticks since boot
  std::string job;              // of the batch system: "1234", "1234_5", or ""
  std::string nonce;            // 32 hex digits, new for every claim
  bool operator==(const ClaimOwner&) const = default;
};

// This process, with a new nonce.
ClaimOwner this_process();

enum class OwnerState : std::uint8_t { alive, gone, unknown };
// Whether the process still runs; unknown for one of another machine, boot or pid namespace.
OwnerState state_of(const ClaimOwner& owner);

struct ClaimStatus {
  std::string stage = "start";  // "load", "text", "denoise", "decode", ...
  std::int64_t step = 0, steps = 0;
  double seconds_per_step = 0;
  std::uint64_t memory_bytes = 0;  // of the process that writes this
  int ranks = 0;
};

struct ClaimRecord {
  ClaimOwner owner;
  std::string scene;
  std::vector<std::string> batch;  // all scenes of the run that holds the claim, so that `status` knows what waits
  std::map<std::string, std::vector<std::string>> parents;  // of those that take frames of other scenes
  double started = 0;                                       // seconds since 1970 by the owner's clock
  ClaimStatus status;
  std::int64_t beat = 0;  // counts the writes of this record
};

std::filesystem::path claim_path(const std::filesystem::path& folder, const std::string& scene);

// The file's content, padded to `capacity` bytes (0: to a size with room for any status).
std::string claim_text(const ClaimRecord& record, std::size_t capacity = 0);
// Nothing for a text that is no claim, as that of a file that was just created.
std::optional<ClaimRecord> claim_from_text(const std::string& text);

// A claim file as it was seen once.
struct ClaimSighting {
  std::uint64_t inode = 0;
  std::int64_t mtime_ns = 0;
  std::string text;
  std::optional<ClaimRecord> record;
  bool same_as(const ClaimSighting& other) const {
    return inode == other.inode && mtime_ns == other.mtime_ns && text == other.text;
  }
};
// Nothing where there is no such file. Throws SceneError for one that cannot be read.
std::optional<ClaimSighting> look_at_claim(const std::filesystem::path& path);

}  // namespace h3
