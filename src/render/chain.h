// Chains: scenes whose first or last frame is a frame of another scene's render. The parent keeps such a frame as PNG
// beside its MP4, X.frame.000021.png, since H.264 would change it; where it keeps all frames (X.frames), that file
// serves. A child is known by the content of the frame, as by that of any other picture it is given.
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "render/scene_render.h"
#include "scene/scene_files.h"

namespace h3 {

// What a child needs to know of its parent before anything is rendered.
struct ParentFacts {
  CanvasSize size;
  std::int64_t frames = 0;
};

// Of a finished render in the folder; nothing where there is none.
std::optional<ParentFacts> find_parent(const std::filesystem::path& folder, const std::string& scene);

// `frame` counted from the start, of so many. Throws UserError naming the scene `where` for one that is not there.
std::int64_t frame_number(const FrameOfScene& of, std::int64_t frames, const std::string& where);

// The scenes of a list, each behind those it takes frames from. Moves those that can never begin into `bad`: in a
// circle, or behind a scene that `bad` holds already. A scene outside the list is nobody's parent here.
std::vector<Scene> parents_first(std::vector<Scene> scenes, std::vector<BadScene>& bad);

std::filesystem::path kept_frame_path(const std::filesystem::path& folder, const std::string& scene,
                                      std::int64_t frame);
// The file with this frame's pixels that a render left, or "".
std::filesystem::path frame_file(const std::filesystem::path& folder, const std::string& scene, std::int64_t frame);

// The frames that a scene takes, where they are and what they hold, by link_key.
struct LinkedFrame {
  std::string file, content;
};
using LinkedFrames = std::map<std::string, LinkedFrame>;
// As the frame stands in the scene's JSON.
std::string link_key(const FrameOfScene& of);

// Looks at the parent's manifest and picture. Throws SceneError where they are missing, or the picture is not the frame
// that the manifest tells of.
LinkedFrame read_link(const std::filesystem::path& folder, const FrameOfScene& of);
// The job with its links turned into files.
SceneJob with_links(SceneJob job, const LinkedFrames& links);

}  // namespace h3
