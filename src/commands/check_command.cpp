// h3render check
#include <cstdio>
#include <iostream>

#include "base/error.h"
#include "bench/device_check.h"
#include "commands/commands.h"
#include "commands/run_command_options.h"
#include "render/partition_use.h"
#include "render/progress.h"
#include "render/run_plan.h"
#include "render/scene_jobs.h"
#include "weights/model_folder.h"
#ifdef H3RENDER_WITH_CUDA
#include "compute/cuda/cuda_machine.h"
#endif

namespace h3 {

namespace {

CommandHelp check_help() {
  return {
      "check",
      "checks scenes and a model folder's headers in seconds",
      "[SCENE...] --model DIR [KEY=VALUE ...]",
      "Reads scene files and the headers of all weights and checks them as strictly as a render does, without MPI, a\n"
      "GPU or reading a weight. Prints every scene as it would be rendered, with what was decided and what is "
      "doubtful.\n"
      "Exit code 2 where anything is wrong.\n"
      "With --device, tests the GPUs that this process sees instead: whether operators give the same bits whole and "
      "in\n"
      "slices, at the model's shapes or the released model's. Exit code 1 where any slice differs, 2 without a GPU.",
      {"h3render check jobs/demo.json --model jobs/nano", "h3render check --model /models/MiniMax-H3",
       "h3render check --device"},
      scene_keys_text()};
}

void print_model(const ModelFolder& model) {
  std::printf("model %s: layout %s\n", model.name().c_str(), model.layout_name().c_str());
  for (const Component c :
       {Component::transformer, Component::text_encoder, Component::video_vae, Component::audio_vae}) {
    const FileSource* files = model.files(c, opened_partitions(model).front());
    std::size_t bytes = 0;
    for (const PlannedTensor& tensor : model.plan(c).tensors) bytes += tensor.bytes();
    std::printf("  %-13s %5zu tensors, %s%s\n", std::string(name_of(c)).c_str(), model.plan(c).tensors.size(),
                bytes_text(static_cast<double>(bytes)).c_str(),
                files ? fmt::format(" in {} file(s)", files->files().size()).c_str() : ", made from a seed");
  }
  for (const std::string& note : model.notes()) std::printf("  note: %s\n", note.c_str());
}

void print_job(const SceneJob& job, std::int64_t text_rows) {
  const ClipGeometry& g = job.geometry;
  std::int64_t conditions = 0;
  for (const MediaItem& item : job.media) conditions += item.visual_rows() + item.audio_rows();
  std::printf("scene %s: %lldx%lld, %lld frames (%.3f s), %lld evaluations, seed %llu, %lld rows (text %lld)\n",
              job.scene.name.c_str(), static_cast<long long>(g.width), static_cast<long long>(g.height),
              static_cast<long long>(g.frames), g.seconds(), static_cast<long long>(job.scene.evaluations),
              static_cast<unsigned long long>(job.scene.seed),
              static_cast<long long>(text_rows + conditions + g.audio_rows() + g.video_rows()),
              static_cast<long long>(text_rows));
  for (const MediaItem& item : job.media) std::printf("  %s\n", text_of(item).c_str());
  for (const std::string& note : job.notes) std::printf("  note: %s\n", note.c_str());
  for (const std::string& warning : job.warnings) std::printf("  warning: %s\n", warning.c_str());
}

#ifdef H3RENDER_WITH_CUDA

// Whether the whole and its slices agree on this GPU.
bool check_gpu(int device, const ModelConfig& config) {
  const std::unique_ptr<Machine> machine = make_cuda_machine(device);
  std::printf("%s (%s), compute capability %s, %s\n%-64s %8s %10s %8s\n", machine->name().c_str(),
              cuda_bus_id(device).c_str(), machine->capability().c_str(), machine->library_versions().c_str(),
              "operator", "slices", "different", "seconds");
  std::int64_t slices = 0, different = 0;
  check_device(*machine, config, {}, [&](const SliceComparison& c) {
    std::printf("%-64s %8lld %10lld %8.2f\n", c.what.c_str(), static_cast<long long>(c.slices),
                static_cast<long long>(c.different), c.seconds);
    std::fflush(stdout);
    slices += c.slices;
    different += c.different;
  });
  if (different == 0)
    std::printf("all %lld slices have the bits of the whole\n", static_cast<long long>(slices));
  else
    std::printf("%lld of %lld slices differ: on this GPU the bits of a render depend on the ranks\n",
                static_cast<long long>(different), static_cast<long long>(slices));
  return different == 0;
}

int gpu_count() {
  return cuda_device_count();
}

#else

bool check_gpu(int, const ModelConfig&) {
  return false;
}

int gpu_count() {
  return 0;
}

#endif

int check_gpus(const ModelConfig& config) {
  const int count = gpu_count();
  if (count == 0)
    throw UserError("--device", "", "", "no GPU to check (nvidia-smi and CUDA_VISIBLE_DEVICES tell more)");
  bool same = true;
  for (int device = 0; device < count; ++device) same = check_gpu(device, config) && same;
  return static_cast<int>(same ? ExitCode::done : ExitCode::failure);
}

}  // namespace

int run_check(const std::vector<std::string>& words) {
  boost::program_options::options_description options;
  options.add_options()("device", "test the GPUs of this machine instead of scenes");
  add_run_options(options, {"model"});
  const CommandLine line(check_help(), options, words, true);
  if (line.help_asked()) {
    std::cout << line.help_text();
    return static_cast<int>(ExitCode::done);
  }
  start_log(line.log(), 0);
  if (line.has("device")) {
    if (!line.words().empty()) throw UserError("--device", "", line.words()[0], "no scenes beside it");
    return check_gpus(open_for_rendering(line.get_or<std::string>("model", "synthetic:1"), false).config());
  }
  const ModelFolder model = open_for_rendering(line.required("model"));
  print_model(model);
  if (line.words().empty() && model.paths().tokenizer.empty()) return static_cast<int>(ExitCode::done);
  const Tokenizer tokenizer = load_tokenizer(model);
  if (line.words().empty()) return static_cast<int>(ExitCode::done);
  const SceneJobs jobs = prepare_scenes(line.words(), line.overrides(), model, &tokenizer);
  for (const SceneJob& job : jobs.good) print_job(job, present_scene(job, model.config(), tokenizer).rows());
  jobs.require_all_good();
  return static_cast<int>(ExitCode::done);
}

}  // namespace h3
