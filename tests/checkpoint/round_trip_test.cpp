#include <gtest/gtest.h>
#include <sys/wait.h>

#include <cstdlib>

#include "base/error.h"
#include "checkpoint/describe.h"
#include "checkpoint/samples.h"
#include "support/temporary_folder.h"

namespace h3::test {

namespace fs = std::filesystem;

constexpr FileLocking kAuto = FileLocking::automatic;

TEST(RoundTrip, checkpoint_with_everything) {
  const TemporaryFolder folder;
  const Checkpoint written = sample_checkpoint(1, 7);
  put_bytes(folder.path() / "a.h5", compose_checkpoint(written));
  EXPECT_EQ(parse_checkpoint(folder.path() / "a.h5", kAuto), written);
  const CheckpointMark mark = parse_checkpoint_mark(folder.path() / "a.h5", kAuto);
  EXPECT_EQ(mark.step, 7);
  EXPECT_EQ(mark.steps, kSampleSteps);
}

TEST(RoundTrip, checkpoint_without_history_and_generator) {
  const TemporaryFolder folder;
  Checkpoint written = sample_checkpoint(1, 0);
  written.previous_video.clear();
  written.previous_audio.clear();
  written.generator.clear();
  put_bytes(folder.path() / "a.h5", compose_checkpoint(written));
  EXPECT_EQ(parse_checkpoint(folder.path() / "a.h5", kAuto), written);
}

TEST(RoundTrip, special_values_keep_their_bits) {
  const TemporaryFolder folder;
  Checkpoint written = sample_checkpoint(1, 0);
  const std::uint32_t bits[] = {0x80000000u, 0x7fc12345u, 0xff800000u, 0x00000001u};
  std::memcpy(written.video.data(), bits, sizeof bits);
  put_bytes(folder.path() / "a.h5", compose_checkpoint(written));
  const Checkpoint read = parse_checkpoint(folder.path() / "a.h5", kAuto);
  EXPECT_EQ(std::memcmp(read.video.data(), bits, sizeof bits), 0);
}

TEST(RoundTrip, inputs) {
  const TemporaryFolder folder;
  const CheckpointInputs written = sample_inputs(3);
  put_bytes(folder.path() / "a.h5", compose_inputs(written));
  const CheckpointInputs read = parse_inputs(folder.path() / "a.h5", kAuto);
  EXPECT_EQ(read.text, written.text);
  EXPECT_EQ(read.tags, written.tags);
  EXPECT_EQ(read.visual_rows, written.visual_rows);
  EXPECT_EQ(read.audio_rows, written.audio_rows);
  EXPECT_EQ(read.layout, written.layout);
  EXPECT_EQ(read.identity(), written.identity());
  EXPECT_EQ(read.content_hash(), written.content_hash());
}

TEST(RoundTrip, equal_content_gives_equal_bytes) {
  EXPECT_TRUE(compose_inputs(sample_inputs(3)) == compose_inputs(sample_inputs(3)));
  EXPECT_TRUE(compose_checkpoint(sample_checkpoint(3, 5)) == compose_checkpoint(sample_checkpoint(3, 5)));
}

TEST(RoundTrip, the_content_hash_sees_every_field_and_no_key_order) {
  const std::string hash = sample_inputs(3).content_hash();
  const auto changed = [&](auto&& change) {
    CheckpointInputs inputs = sample_inputs(3);
    change(inputs);
    return inputs.content_hash() != hash;
  };
  EXPECT_TRUE(changed([](auto& i) { i.text.bytes[3] ^= std::byte{1}; }));
  EXPECT_TRUE(changed([](auto& i) { i.text.shape = {4, 5}; }));
  EXPECT_TRUE(changed([](auto& i) { i.text.dtype = DType::f16; }));
  EXPECT_TRUE(changed([](auto& i) { i.tags.bytes[0] = std::byte{0}; }));
  EXPECT_TRUE(changed([](auto& i) { i.visual_rows.shape = {0, 9}; }));
  EXPECT_TRUE(changed([](auto& i) { i.audio_rows.bytes[0] ^= std::byte{1}; }));
  EXPECT_TRUE(changed([](auto& i) { i.layout["x"] = 1; }));
  EXPECT_TRUE(changed([](auto& i) { i.scene["seed"] = 4; }));
  EXPECT_TRUE(changed([](auto& i) { i.model_identity += "0"; }));
  EXPECT_TRUE(changed([](auto& i) { i.adapters.push_back("turbo"); }));
  EXPECT_TRUE(changed([](auto& i) { i.numerics["precision"] = "f32"; }));
  EXPECT_FALSE(changed([](auto& i) {
    i.scene = {{"shift", 6.5}, {"seed", 3}, {"prompt", "a red circle, größer"}, {"name", "sample"}};
  }));
}

TEST(RoundTrip, h5dump_reads_values_units_and_meanings) {
  if (std::string(H5DUMP).empty()) GTEST_SKIP() << "h5dump is not installed";
  const TemporaryFolder folder;
  put_bytes(folder.path() / "a.h5", compose_checkpoint(sample_checkpoint(1, 7)));
  const fs::path out = folder.path() / "dump";
  const std::string command =
      fmt::format("'{}' '{}' > '{}' 2>&1", H5DUMP, (folder.path() / "a.h5").string(), out.string());
  ASSERT_EQ(std::system(command.c_str()), 0);
  const std::string dump = bytes_of(out);
  for (const char* text : {"video_latents", "H5T_IEEE_F32LE", "\"units\"", "\"meaning\"", "res_multistep",
                           "noise level, 1 is pure noise", "h3render checkpoint"})
    EXPECT_NE(dump.find(text), std::string::npos) << text;
}

TEST(RoundTrip, description_for_people) {
  const TemporaryFolder folder;
  put_bytes(folder.path() / "a.h5", compose_checkpoint(sample_checkpoint(1, 7)));
  put_bytes(folder.path() / "b.h5", compose_inputs(sample_inputs(1)));
  const auto state = describe_checkpoint_file(folder.path() / "a.h5", kAuto);
  EXPECT_EQ(state["step"], 7);
  EXPECT_EQ(state["datasets"]["video_latents"]["shape"], nlohmann::json({12, 8}));
  EXPECT_TRUE(state["damage"].is_null());
  const auto inputs = describe_checkpoint_file(folder.path() / "b.h5", kAuto);
  EXPECT_EQ(inputs["scene"]["prompt"], "a red circle, größer");
  EXPECT_EQ(inputs["datasets"]["text"]["dtype"], "bf16");
}

}  // namespace h3::test
