// Under mpirun: the text encoder gives every rank the bits of one rank alone, for both shardings and both precisions.
#include <cstdio>
#include <cstring>

#include "parallel/cluster.h"
#include "parallel/gather.h"
#include "parallel/mpi_communicator.h"
#include "parallel/solo_communicator.h"
#include "text/nano_text.h"
#include "text/text_encoder.h"
#include "text/vision_tower.h"

using namespace h3;

namespace {

void check_same(const Tensor& a, const Tensor& b, const char* what) {
  H3_CHECK(a.shape == b.shape && std::memcmp(a.data, b.data, a.bytes()) == 0, what);
}

class World {
 public:
  World() : comm_(MPI_COMM_WORLD, *machine_), solo_(*machine_), queue_(machine_->make_queue()) {}
  int size() const { return comm_.size(); }

  void check_column_gather(std::int64_t rows, std::vector<Range> columns) {
    const std::int64_t width = columns.back().end;
    Arena arena(*machine_, 1 << 20);
    const Tensor out = arena.take({rows, width}, DType::f32), scratch = arena.take({rows, width}, DType::f32);
    const ColumnGather gather(comm_, machine_->operators(), std::move(columns));
    const Tensor part = gather.part(out, scratch);
    for (std::int64_t i = 0; i < part.size(0); ++i) {
      for (std::int64_t j = 0; j < part.size(1); ++j) {
        part.as<float>()[i * part.stride(0) + j] = value(i, gather.own().begin + j);
      }
    }
    gather.gather(*queue_, out, scratch);
    for (std::int64_t i = 0; i < rows; ++i) {
      for (std::int64_t j = 0; j < width; ++j) CHECK_EQ(out.as<float>()[i * width + j], value(i, j));
    }
  }

  // The tower and the language model on all ranks against one rank alone.
  void check_encoder(const Presentation& presentation, const std::vector<VisionPixels>& pixels, DType dtype) {
    const VisionFeatures vision = features(solo_, pixels, dtype), shared = features(comm_, pixels, dtype);
    if (!pixels.empty()) check_same(shared.embeddings, vision.embeddings, "embeddings");
    for (std::size_t k = 0; k < vision.deepstack.size(); ++k) {
      check_same(shared.deepstack[k], vision.deepstack[k], "deepstack");
    }
    const auto encode = [&](Communicator& communicator, TextSharding sharding) {
      TextEncoderOptions options;
      options.sharding = sharding;
      options.row_chunk = 50;
      TextEncoder encoder(*machine_, communicator, test::nano_text_config(), test::nano_text_weights(dtype), options);
      return encoder.encode(*queue_, presentation, &vision);
    };
    const TextStates alone = encode(solo_, TextSharding::outputs);
    for (const TextSharding sharding : {TextSharding::outputs, TextSharding::rows}) {
      const TextStates states = encode(comm_, sharding);
      check_same(states.hidden, alone.hidden, name_of(sharding).data());
      const std::int64_t pairs = (presentation.rows() + 255) / 256;  // of tiles
      const std::int64_t units = sharding == TextSharding::outputs ? 16 : pairs, ranks = comm_.size();
      CHECK_EQ(states.participants, units < ranks ? units : ranks);
    }
  }

  // Texts of both ways of sharding at one visit against each on one rank alone.
  void check_several(const std::vector<Presentation>& texts, DType dtype) {
    TextEncoderOptions options;
    options.rows_from = 100;
    TextEncoder encoder(*machine_, comm_, test::nano_text_config(), test::nano_text_weights(dtype), options);
    TextEncoder alone(*machine_, solo_, test::nano_text_config(), test::nano_text_weights(dtype));
    std::vector<TextRequest> requests;
    for (const Presentation& text : texts) requests.push_back({text});
    const std::vector<TextStates> all = encoder.encode_all(*queue_, requests);
    for (std::size_t i = 0; i < texts.size(); ++i) {
      check_same(all[i].hidden, alone.encode(*queue_, texts[i]).hidden, "several");
      const TextSharding wanted = texts[i].rows() >= 100 ? TextSharding::rows : TextSharding::outputs;
      H3_CHECK(comm_.size() == 1 || all[i].sharding == wanted, std::string(name_of(all[i].sharding)));
    }
  }

  const test::Goldens& goldens() const { return goldens_; }

 private:
  VisionFeatures features(Communicator& communicator, const std::vector<VisionPixels>& pixels, DType dtype) {
    VisionTower tower(*machine_, communicator, test::nano_text_config().vision, test::nano_text_weights(dtype));
    return tower.encode(*queue_, pixels);
  }
  static float value(std::int64_t row, std::int64_t column) { return static_cast<float>(row * 1000 + column); }

  const std::unique_ptr<Machine> machine_ = make_cpu_machine();
  MpiCommunicator comm_;
  SoloCommunicator solo_;
  const std::unique_ptr<Queue> queue_;
  const test::Goldens goldens_{"text"};
};

void run() {
  World world;
  const auto n = static_cast<std::size_t>(world.size());
  const std::vector<double> even(n, 1.0);
  std::vector<double> last(n, 0.0);
  last.back() = 1;
  for (const auto& shares : {even, last}) {
    for (const std::int64_t width : {1, 3, 64}) world.check_column_gather(5, deal(width, shares));
  }
  std::string long_prompt;
  for (int i = 0; i < 60; ++i) long_prompt += "A red circle moves right on a black background. ";
  const Presentation prompt = present(test::nano_tokenizer(), test::nano_text_config(), {long_prompt, {}});
  const Presentation short_prompt = present(test::nano_tokenizer(), test::nano_text_config(), {"A red circle.", {}});
  for (const DType dtype : {DType::f32, DType::bf16}) {
    world.check_encoder(prompt, {}, dtype);
    world.check_several({short_prompt, prompt, short_prompt}, dtype);
    for (const char* name : {"fl2va_one", "ref2va_image_clip"}) {
      world.check_encoder(test::golden_presentation(world.goldens(), name), test::golden_pixels(world.goldens(), name),
                          dtype);
    }
  }
}

}  // namespace

int main(int argc, char** argv) {
  Cluster cluster(&argc, &argv);
  try {
    run();
    if (cluster.rank() == 0) std::puts("text: every rank has the bits of one rank");
  } catch (const std::exception& e) {
    std::fprintf(stderr, "rank %d: %s\n", cluster.rank(), e.what());
    Cluster::abort(1);
  }
  return 0;
}
