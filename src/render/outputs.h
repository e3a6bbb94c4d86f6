// What a scene leaves in the output folder, written by rank 0 as frames arrive: MP4, and on request PNG frames, WAV and
// the contact sheet. Hashes are taken of the raw frames and samples, since containers differ between equal renders. An
// error is kept until `finish`, so that a full disk cannot make the ranks that still send frames wait forever.
#pragma once

#include <filesystem>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "compute/tensor.h"
#include "render/scene_render.h"
#include "scene/geometry.h"
#include "scene/scene.h"

namespace h3 {

struct OutputHashes {
  std::string frames, audio;
  std::vector<std::string> each_frame;
};

class SceneOutputs {
 public:
  SceneOutputs(const std::filesystem::path& folder, const SceneJob& job);
  ~SceneOutputs();
  // frames [n, height, width, 3] u8 in order.
  void add_frames(std::int64_t first, const Tensor& frames);
  // pcm [2, samples] f32.
  void add_audio(const Tensor& pcm);
  // Completes the files, gives them their names and removes those of a former render that this one does not have.
  // Returns the error that stopped writing, or ""; after an error nothing is left, so that the space is free for
  // others.
  std::string finish();
  // Removes what was written: for a scene that fails afterwards.
  void discard();
  const OutputHashes& hashes() const { return hashes_; }
  // Names of the files written, relative to the folder.
  const std::vector<std::string>& files() const { return files_; }

 private:
  struct Writers;
  template <typename F>
  void guarded(F&& write);

  std::filesystem::path folder_;
  Scene scene_;
  ClipGeometry geometry_;
  std::set<std::int64_t> kept_;  // frames that other scenes take
  std::unique_ptr<Writers> writers_;
  OutputHashes hashes_;
  std::vector<std::string> files_, former_files_;
  std::string error_;
};

}  // namespace h3
