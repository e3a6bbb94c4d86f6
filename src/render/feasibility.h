// Whether a batch fits on this node, judged by its largest scene before anything heavy is read: host memory, shared
// memory and, on GPUs, device memory by the plan; disk room by what is certain to be written.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "render/scene_jobs.h"
#include "render/session.h"

namespace h3 {

// Bytes that a node needs for the scenes that are left to render.
struct BatchNeeds {
  std::string largest;            // the scene with the longest sequence; "": none is left
  std::uint64_t weights = 0;      // the node's one copy, of the components that must be there at once
  bool shared = false;            // several ranks share it
  std::uint64_t host = 0;         // beside the weights, of all ranks of the node
  std::uint64_t device = 0;       // of the rank with most, without blocks that may be streamed; 0 on CPUs
  std::uint64_t sounds = 0;       // WAV files, whose size is certain
  std::uint64_t checkpoints = 0;  // of the scenes that are rendered at the same time
};

// What the node has.
struct NodeRoom {
  std::uint64_t host = 0, shared = 0, scratch = 0, device = 0, disk = 0;
  std::string host_limit = "the host";
};

struct Verdict {
  std::string refusal;  // "" or what cannot be
  std::string warning;  // "" or what is doubtful
};
Verdict judge(const BatchNeeds& needs, const NodeRoom& room);

// Looks at this node. Throws UserError where the scenes that have no manifest yet cannot be rendered; returns a warning
// or "". Every rank may call by itself.
std::string check_feasible(Session& session, const SceneJobs& jobs);

}  // namespace h3
