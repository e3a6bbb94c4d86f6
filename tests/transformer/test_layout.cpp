#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <map>

#include "support/goldens.h"
#include "transformer/packed_sequence.h"
#include "transformer/rotary.h"

namespace h3 {
namespace {

template <typename T>
std::vector<T> golden_values(const test::Goldens& goldens, const std::string& name) {
  const Tensor t = goldens.at(name);
  return {t.as<T>(), t.as<T>() + t.elements()};
}

std::vector<std::int64_t> widened(const std::vector<std::int32_t>& values) {
  return {values.begin(), values.end()};
}

void expect_same_doubles(const std::vector<double>& actual, const std::vector<double>& expected,
                         const std::string& name) {
  ASSERT_EQ(actual.size(), expected.size()) << name;
  for (std::size_t i = 0; i < actual.size(); ++i) {
    ASSERT_EQ(std::bit_cast<std::uint64_t>(actual[i]), std::bit_cast<std::uint64_t>(expected[i]))
        << name << "[" << i << "]: " << actual[i] << " against " << expected[i];
  }
}

std::vector<double> flat(const std::vector<Position>& positions) {
  std::vector<double> values;
  for (const Position& p : positions) values.insert(values.end(), p.begin(), p.end());
  return values;
}

// Tags of the text rows of a golden sequence.
std::vector<std::uint8_t> text_tags(const test::Goldens& goldens, const std::string& prefix) {
  const auto tags = golden_values<std::int64_t>(goldens, prefix + "token_tags");
  const std::int64_t length = goldens.at(prefix + "text_indices").elements();
  return {tags.begin(), tags.begin() + length};
}

std::vector<Keyframe> keyframes_of(const nlohmann::json& request) {
  std::vector<Keyframe> keyframes;
  if (request.value("first", false)) keyframes.push_back({Keyframe::Anchor::first});
  if (request.value("last", false)) keyframes.push_back({Keyframe::Anchor::last});
  return keyframes;
}

std::vector<PackedReference> references_of(const nlohmann::json& request, const nlohmann::json& result) {
  std::vector<PackedReference> references;
  std::size_t shape = 0, sound = 0;
  for (const std::string& ref : request.value("refs", std::vector<std::string>{})) {
    PackedReference r;
    const bool is_video = ref == "clip" || ref == "silent", is_audio = ref == "sound";
    r.kind = is_video   ? PackedReference::Kind::video
             : is_audio ? PackedReference::Kind::audio
                        : PackedReference::Kind::image;
    if (!is_audio) {
      const auto& s = result.at("condition_shapes").at(shape++);
      r.size = {s[2], s[3], s[4]};
    }
    if (is_audio || ref == "clip") {
      r.audio_latents = result.at("audio_condition_rows").at(sound++).get<std::int64_t>() / 2;
    }
    references.push_back(r);
  }
  return references;
}

class LayoutGoldens : public testing::TestWithParam<std::string> {
 protected:
  LayoutGoldens() : goldens_("layouts"), prefix_(GetParam() + "."), tags_(text_tags(goldens_, prefix_)) {
    const auto& meta = goldens_.json().at("meta");
    const auto& request = meta.at("cases").at(GetParam());
    result_ = meta.at("results").at(GetParam());
    sequence_ =
        pack_sequence({tags_,
                       {result_.at("num_latent_frames"), result_.at("latent_height"), result_.at("latent_width")},
                       result_.at("num_audio_latents"),
                       keyframes_of(request),
                       references_of(request, result_)});
  }
  test::Goldens goldens_;
  std::string prefix_;
  std::vector<std::uint8_t> tags_;
  nlohmann::json result_;
  PackedSequence sequence_;
};

TEST_P(LayoutGoldens, PositionsAreEqual) {
  EXPECT_EQ(sequence_.rows(), result_.at("sequence").get<std::int64_t>());
  expect_same_doubles(flat(sequence_.positions), golden_values<double>(goldens_, prefix_ + "position_ids"), prefix_);
}

TEST_P(LayoutGoldens, TagsAndIndicesAreEqual) {
  std::vector<std::int64_t> tags;
  for (const ModulationClass c : sequence_.classes) tags.push_back(static_cast<std::int64_t>(modality_of(c)));
  EXPECT_EQ(tags, golden_values<std::int64_t>(goldens_, prefix_ + "token_tags"));
  const auto expected = [&](const char* name) { return golden_values<std::int64_t>(goldens_, prefix_ + name); };
  EXPECT_EQ(widened(sequence_.text_rows), expected("text_indices"));
  EXPECT_EQ(widened(sequence_.video_rows), expected("video_indices"));
  EXPECT_EQ(widened(sequence_.audio_rows), expected("audio_indices"));
  EXPECT_EQ(static_cast<std::int64_t>(sequence_.video_rows.size()) - sequence_.target_video.size(),
            result_.at("num_condition_video_rows").get<std::int64_t>());
  EXPECT_EQ(static_cast<std::int64_t>(sequence_.audio_rows.size()) - sequence_.target_audio.size(),
            result_.at("num_condition_audio_rows").get<std::int64_t>());
}

TEST_P(LayoutGoldens, TimePlansAreEqual) {
  const test::Goldens schedules("schedules");
  const auto steps = schedule_timesteps(golden_values<float>(schedules, "shift6.e4.timesteps"),
                                        golden_values<float>(schedules, "shift3.e4.timesteps"));
  for (std::size_t step = 0; step < 4; ++step) {
    const std::string name = prefix_ + "plan" + std::to_string(step);
    const TimePlan plan = plan_times(steps[step], sequence_.present());
    EXPECT_EQ(plan.timesteps, golden_values<float>(goldens_, name + ".timesteps")) << name;
    std::vector<std::uint8_t> indices;
    for (const ModulationClass c : sequence_.classes) {
      indices.push_back(static_cast<std::uint8_t>(plan.index[static_cast<std::size_t>(c)]));
      EXPECT_EQ(plan.modulation_row(c), 3 * indices.back() + static_cast<std::int32_t>(modality_of(c)));
    }
    EXPECT_EQ(indices, golden_values<std::uint8_t>(goldens_, name + ".indices")) << name;
  }
}

TEST_P(LayoutGoldens, SegmentsCoverTheRowsOnceAndPointIntoTheirInputs) {
  std::map<SegmentKind, std::int64_t> next;
  std::int64_t at = 0;
  for (const Segment& segment : sequence_.segments) {
    EXPECT_EQ(segment.begin, at);
    EXPECT_LT(segment.begin, segment.end);
    EXPECT_EQ(segment.source, next[segment.kind]);
    next[segment.kind] += segment.end - segment.begin;
    at = segment.end;
  }
  EXPECT_EQ(at, sequence_.rows());
  EXPECT_EQ(sequence_.target_video.end, at);
  EXPECT_EQ(sequence_.target_audio.end, sequence_.target_video.begin);
  EXPECT_EQ(sequence_.text, (Range{0, static_cast<std::int64_t>(tags_.size())}));
}

INSTANTIATE_TEST_SUITE_P(All, LayoutGoldens,
                         testing::Values("t2va_22", "t2va_39", "fl2va_first_22", "fl2va_last_22", "fl2va_both_39",
                                         "ref2va_image_22", "ref2va_images_22", "ref2va_clip_22", "ref2va_sound_22",
                                         "ref2va_all_39"),
                         [](const auto& test_case) { return test_case.param; });

TEST(Layout, AxesAreEqual) {
  const test::Goldens goldens("layouts");
  for (const auto& grid : goldens.json().at("meta").at("grids")) {
    const std::int64_t h = grid[0], w = grid[1];
    const std::string name = "grid." + std::to_string(h) + "x" + std::to_string(w);
    expect_same_doubles(spatial_axis(h, w), golden_values<double>(goldens, name + ".height"), name + ".height");
    expect_same_doubles(spatial_axis(w, h), golden_values<double>(goldens, name + ".width"), name + ".width");
  }
  const auto times = golden_values<double>(goldens, "temporal.107");
  expect_same_doubles(temporal_axis(107, times[0]), times, "temporal.107");
  std::vector<double> anchors;
  for (std::int64_t t = 2; t <= 107; t += 5) anchors.push_back(last_frame_time(t, 20));
  expect_same_doubles(anchors, golden_values<double>(goldens, "last_anchor"), "last_anchor");
}

TEST(Layout, PairwiseSumGoesOnAbove128Frames) {
  for (const std::int64_t frames : {128, 129, 137, 400, 1002}) {
    EXPECT_NEAR(last_frame_time(frames, 512) + 5.0 / 3.0, 512 + temporal_length(frames), 1e-9) << frames;
  }
}

// The layout test vector of the specification: 512 text rows, 124 frames at 1344 x 768.
PackedSequence full_size_sequence() {
  const std::vector<std::uint8_t> tags(512, 1);
  return pack_sequence({tags, {37, 48, 84}, 207, {}, {}});
}

TEST(Layout, FullSizeRowsAreThoseOfTheSpecification) {
  const PackedSequence s = full_size_sequence();
  EXPECT_EQ(s.rows(), 38222);
  const double left = -5.166010488516722, right = 36.15810522715877;
  const std::map<std::size_t, Position> rows{{511, {511, 0, 0}},
                                             {512, {512, 0, left}},
                                             {718, {718, 0, left}},
                                             {719, {512, 0, right}},
                                             {925, {718, 0, right}},
                                             {926, {512, 3.9051368637047297, left}},
                                             {927, {512, 3.9051368637047297, -4.158105227158783}},
                                             {968, {512, 4.913042125062669, left}},
                                             {1934, {513.6666666666666, 3.9051368637047297, left}},
                                             {38221, {711.9999999999999, 27.08695787493733, right}}};
  for (const auto& [row, position] : rows) EXPECT_EQ(s.positions[row], position) << row;
}

TEST(Layout, LastKeyframesOfLongClips) {
  EXPECT_EQ(last_frame_time(37, 512), 717.0);
  EXPECT_EQ(last_frame_time(72, 512), 915.3333333333334);
  EXPECT_EQ(last_frame_time(107, 512), 1113.6666666666663);
  EXPECT_EQ(static_cast<float>(last_frame_time(107, 512)), static_cast<float>(frame_time(-1, 107, 512)));
}

TEST(Layout, KeyframesAtAnyFrameStandBeforeReferencesAndCountFromTheTarget) {
  const std::vector<std::uint8_t> tags{1, 1, 0, 0, 1};
  const Keyframe second{Keyframe::Anchor::frame, 1, 1, 0}, run{Keyframe::Anchor::frame, -5, 2, 3};
  const PackedReference image{PackedReference::Kind::image, {1, 8, 4}, 0}, sound{PackedReference::Kind::audio, {}, 6};
  const PackedSequence s = pack_sequence({tags, {7, 4, 6}, 37, {second, run}, {image, sound}});
  const double origin = 5 + 1 + 6, frame = 5.0 / 3.0;
  // text 5; keyframe 6 rows; two frames and 2 x 3 sounds; image 8; sound 12; target audio 74, video 42.
  ASSERT_EQ(s.rows(), 5 + 6 + (12 + 6) + 8 + 12 + 74 + 42);
  EXPECT_EQ(s.positions[5][0], origin + frame);
  EXPECT_EQ(s.positions[11][0], origin + frame * 17);  // 22 - 5
  EXPECT_EQ(s.positions[17][0], origin + frame * 17 + frame);
  EXPECT_EQ(s.positions[23], (Position{origin + frame * 17, 0, spatial_axis(6, 4).front()}));
  EXPECT_EQ(s.positions[28], (Position{origin + frame * 17 + 2, 0, spatial_axis(6, 4).back()}));
  EXPECT_EQ(s.positions[29][0], 5);
  EXPECT_EQ(s.positions[37][0], 6);
  EXPECT_EQ(s.positions[static_cast<std::size_t>(s.target_video.begin)][0], origin);
  EXPECT_EQ(s.classes[2], ModulationClass::video);
  EXPECT_EQ(s.classes[5], ModulationClass::visual_condition);
  EXPECT_EQ(s.classes[23], ModulationClass::audio_condition);
  EXPECT_EQ(s.segments.size(), 8u);
}

// Each reference starts where the one before it ends; how long each lasts does not depend on its place.
TEST(Layout, ReferencesInAnyOrder) {
  const std::vector<std::uint8_t> tags(20, 1);
  const PackedReference image{PackedReference::Kind::image, {1, 8, 4}, 0}, sound{PackedReference::Kind::audio, {}, 6},
      clip{PackedReference::Kind::video, {7, 4, 6}, 37}, silent{PackedReference::Kind::video, {12, 6, 4}, 0};
  // The clip's sound outlasts its 22 frames of 5/3; 39 frames last 65.
  const std::vector<std::pair<PackedReference, double>> all{{image, 1}, {sound, 6}, {clip, 37}, {silent, 65}};
  std::vector<std::size_t> order{0, 1, 2, 3};
  do {
    std::vector<PackedReference> references;
    for (const std::size_t i : order) references.push_back(all[i].first);
    const PackedSequence s = pack_sequence({tags, {7, 4, 6}, 37, {}, references});
    double clock = 20;
    std::size_t row = 20;
    for (const std::size_t i : order) {
      const PackedReference& r = all[i].first;
      EXPECT_DOUBLE_EQ(s.positions[row][0], clock);
      const bool sounds = r.audio_latents > 0;
      EXPECT_EQ(s.classes[row], sounds ? ModulationClass::audio_condition : ModulationClass::visual_condition);
      row += static_cast<std::size_t>(2 * r.audio_latents + r.size.rows());
      clock += all[i].second;
    }
    EXPECT_EQ(row, static_cast<std::size_t>(s.target_audio.begin));
    EXPECT_NEAR(s.positions[row][0], clock, 1e-12);
  } while (std::next_permutation(order.begin(), order.end()));
}

// ComfyUI's guides of several frames: 17 k + 5 of them on the target's clock, from any frame.
TEST(Layout, ClipsAsGuidesAtAnyFrame) {
  const std::vector<std::uint8_t> tags(10, 1);
  for (const std::int64_t frame : {0, 1, 7, 17, -22}) {
    const Keyframe clip{Keyframe::Anchor::frame, frame, 7, 0};  // 22 frames
    const PackedSequence s = pack_sequence({tags, {12, 4, 4}, 65, {clip}, {}});
    const std::int64_t from_start = frame < 0 ? 39 + frame : frame;
    const std::vector<double> times = temporal_axis(7, 10 + 5.0 / 3.0 * static_cast<double>(from_start));
    for (std::size_t k = 0; k < times.size(); ++k)
      for (std::size_t patch = 0; patch < 4; ++patch) EXPECT_EQ(s.positions[10 + 4 * k + patch][0], times[k]) << frame;
    if (from_start % 17 != 0) continue;
    // At a multiple of the decoder's chunk the guide's latents stand where the target's own do.
    std::size_t own = static_cast<std::size_t>(s.target_video.begin + 4 * 5 * (from_start / 17));
    for (const double t : times) {
      EXPECT_NEAR(t, s.positions[own][0], 1e-9) << frame;
      own += 4;
    }
  }
}

TEST(Layout, RefusesWhatCannotBePacked) {
  const std::vector<std::uint8_t> tags{1, 2};
  EXPECT_ANY_THROW(pack_sequence({tags, {2, 4, 4}, 8, {}, {}}));
  EXPECT_ANY_THROW(pack_sequence({{}, {2, 3, 4}, 8, {}, {}}));
  EXPECT_ANY_THROW(pack_sequence({{}, {2, 0, 4}, 8, {}, {}}));
}

TEST(TimeClasses, CountDistinctTimesAndHoldConditionsNearlyClean) {
  const ClassSet all{true, true, true, true, true}, plain{true, true, true, false, false};
  EXPECT_EQ(plan_times(class_timesteps(0, 0), plain).timesteps.size(), 1u);
  EXPECT_EQ(plan_times(class_timesteps(0.1f, 0.2f), plain).timesteps.size(), 2u);
  EXPECT_EQ(plan_times(class_timesteps(0.1f, 0.2f), all).timesteps.size(), 4u);
  // A video beyond 0.999 takes its conditions along.
  const TimePlan late = plan_times(class_timesteps(0.9995f, 0.2f), all);
  EXPECT_EQ(late.timesteps, (std::vector<float>{0.2f, 0.9995f, 1.0f}));
  EXPECT_EQ(late.index, (std::array<std::int32_t, 5>{1, 1, 0, 1, 2}));
  EXPECT_EQ(std::bit_cast<std::uint32_t>(class_timesteps(0, 0)[3]), 0x3f7fbe77u);
  const TimePlan absent = plan_times(class_timesteps(0.1f, 0.2f), plain);
  EXPECT_EQ(absent.index[3], -1);
  EXPECT_ANY_THROW(static_cast<void>(absent.modulation_row(ModulationClass::visual_condition)));
}

TEST(Rotary, FrequenciesHaveTheBitsOfTheSpecification) {
  const std::uint32_t expected[] = {0x3f800000, 0x3f0ff59a, 0x3ea1e89b, 0x3e361887, 0x3dcccccd, 0x3d6655c2,
                                    0x3d0186e3, 0x3c91ad39, 0x3c23d70a, 0x3bb8449c, 0x3b4f3e38, 0x3ae91528,
                                    0x3a83126f, 0x3a136a16, 0x39a5cb60, 0x393a7753};
  const auto frequencies = inverse_frequencies(16, 10000);
  ASSERT_EQ(frequencies.size(), 16u);
  for (std::size_t i = 0; i < 16; ++i) EXPECT_EQ(std::bit_cast<std::uint32_t>(frequencies[i]), expected[i]) << i;
  EXPECT_EQ(inverse_frequencies(4, 10000), (std::vector<float>{1.0f, 0.1f, 0.01f, 0.001f}));
  EXPECT_EQ(inverse_frequencies(2, 10000), (std::vector<float>{1.0f, 0.01f}));
}

template <typename T>
struct Table {
  Table(std::span<const Position> positions, std::int64_t freqs, DType dtype)
      : shape{static_cast<std::int64_t>(positions.size()), 3 * freqs},
        cos(static_cast<std::size_t>(shape.elements())),
        sin(cos.size()) {
    for (std::vector<T>* values : {&cos, &sin}) {
      std::fill_n(reinterpret_cast<unsigned char*>(values->data()), values->size() * sizeof(T), 0xff);
    }
    fill_rotary_table(positions, inverse_frequencies(freqs, 10000), Tensor(cos.data(), shape, dtype),
                      Tensor(sin.data(), shape, dtype));
  }
  Shape shape;
  std::vector<T> cos, sin;
};

TEST(Rotary, SamplesAreThoseOfTheSpecification) {
  const PackedSequence s = full_size_sequence();
  const std::vector<Position> rows{s.positions[926], s.positions[38221]};
  const Table<float> table(rows, 16, DType::f32);
  const Table<bf16_t> rounded(rows, 16, DType::bf16);
  const auto expect = [&](std::size_t row, std::size_t angle, float cos, float sin, float cos_bf16, float sin_bf16) {
    const std::size_t i = row * 48 + angle;
    EXPECT_NEAR(table.cos[i], cos, 1.2e-7) << angle;
    EXPECT_NEAR(table.sin[i], sin, 1.2e-7) << angle;
    EXPECT_EQ(to_f32(rounded.cos[i]), cos_bf16) << angle;
    EXPECT_EQ(to_f32(rounded.sin[i]), sin_bf16) << angle;
  };
  expect(0, 0, -0.996833384f, 0.079518497f, -0.99609375f, 0.07958984375f);
  expect(0, 1, 0.446665049f, -0.894701242f, 0.447265625f, -0.89453125f);
  expect(0, 16, -0.722389817f, -0.691486061f, -0.72265625f, -0.69140625f);
  expect(0, 32, 0.438223571f, 0.898865998f, 0.4375f, 0.8984375f);
  expect(1, 0, -0.416201651f, 0.909272313f, -0.416015625f, 0.91015625f);
  expect(1, 32, 0.0297840219f, -0.999556363f, 0.02978515625f, -1.0f);
}

TEST(Rotary, ASliceOfTheTableIsTheTableOfTheSlice) {
  const PackedSequence s = full_size_sequence();
  const Table<float> whole(s.positions, 16, DType::f32);
  const std::vector<std::pair<std::size_t, std::size_t>> slices{
      {0, 0}, {0, 1}, {511, 927}, {1000, 1001}, {38221, 38222}};
  for (const auto& [begin, end] : slices) {
    const Table<float> part(std::span(s.positions).subspan(begin, end - begin), 16, DType::f32);
    const auto slice = [&](const std::vector<float>& values) {
      const std::span<const float> rows = std::span(values).subspan(begin * 48, (end - begin) * 48);
      return std::vector<float>(rows.begin(), rows.end());
    };
    EXPECT_EQ(part.cos, slice(whole.cos)) << begin;
    EXPECT_EQ(part.sin, slice(whole.sin)) << begin;
  }
}

TEST(Rotary, RoundsOnceAndWritesStridedRows) {
  const PackedSequence s = pack_sequence({{}, {7, 6, 8}, 37, {}, {}});
  const Table<float> exact(s.positions, 4, DType::f32);
  const Table<f16_t> half(s.positions, 4, DType::f16);
  for (std::size_t i = 0; i < exact.cos.size(); ++i) {
    EXPECT_EQ(to_f32(half.cos[i]), round_to(DType::f16, exact.cos[i]));
    EXPECT_EQ(to_f32(half.sin[i]), round_to(DType::f16, exact.sin[i]));
  }
  // Cosine and sine side by side in one buffer.
  std::vector<float> both(exact.cos.size() * 2, NAN);
  const Tensor wide(both.data(), {s.rows(), 24}, DType::f32);
  fill_rotary_table(s.positions, inverse_frequencies(4, 10000), wide.slice(1, 0, 12), wide.slice(1, 12, 24));
  EXPECT_EQ(test::values_of(wide.slice(1, 0, 12)), exact.cos);
  EXPECT_EQ(test::values_of(wide.slice(1, 12, 24)), exact.sin);
}

TEST(Rotary, RefusesTablesOfAnotherShapeOrType) {
  const std::vector<Position> positions{{1, 2, 3}};
  std::vector<double> buffer(64);
  const auto frequencies = inverse_frequencies(4, 10000);
  const auto table = [&](Shape shape, DType dtype) { return Tensor(buffer.data(), shape, dtype); };
  const Tensor good = table({1, 12}, DType::f32);
  EXPECT_ANY_THROW(fill_rotary_table(positions, frequencies, table({1, 8}, DType::f32), good));
  EXPECT_ANY_THROW(fill_rotary_table(positions, frequencies, good, table({2, 12}, DType::f32)));
  EXPECT_ANY_THROW(fill_rotary_table(positions, frequencies, good, table({1, 12}, DType::bf16)));
  const Tensor integers = table({1, 12}, DType::i32);
  EXPECT_ANY_THROW(fill_rotary_table(positions, frequencies, integers, integers));
}

// The packed sequence of a case of the transformer goldens: 22 frames at 96 x 128.
PackedSequence transformer_case(const test::Goldens& goldens, const std::string& name) {
  const auto tags = text_tags(goldens, name + ".in.");
  std::vector<PackedReference> references;
  if (name == "ref2va") {
    references = {{PackedReference::Kind::image, {1, 16, 12}, 0},
                  {PackedReference::Kind::video, {7, 12, 16}, 37},
                  {PackedReference::Kind::audio, {}, 24}};
  }
  return pack_sequence({tags, {7, 6, 8}, 37, keyframes_of(goldens.json().at("meta").at("cases").at(name)), references});
}

TEST(Clip, HoldsWhatTheReferencesForwardsAreGiven) {
  const test::Goldens goldens("transformer");
  for (const std::string name : {"t2va", "fl2va", "ref2va"}) {
    const std::string in = name + ".in.";
    const PackedSequence sequence = transformer_case(goldens, name);
    std::vector<float> positions;  // float32 there, as where angles are formed
    for (const double p : flat(sequence.positions)) positions.push_back(static_cast<float>(p));
    EXPECT_EQ(positions, golden_values<float>(goldens, in + "position_ids")) << name;
    EXPECT_EQ(widened(sequence.video_rows), golden_values<std::int64_t>(goldens, in + "video_indices")) << name;
    EXPECT_EQ(widened(sequence.audio_rows), golden_values<std::int64_t>(goldens, in + "audio_indices")) << name;

    const Clip clip = make_clip(sequence, 4, 10000);
    EXPECT_EQ(clip.rows, sequence.rows());
    EXPECT_EQ(clip.text_rows, goldens.at(in + "text_indices").elements());
    std::vector<std::int32_t> classes;
    for (const ModulationClass c : sequence.classes) classes.push_back(static_cast<std::int32_t>(c));
    EXPECT_EQ(clip.classes, classes);
  }
}

TEST(Clip, RotaryTableEqualsTheReference) {
  const test::Goldens goldens("transformer");
  Clip clip = make_clip(transformer_case(goldens, "t2va"), 4, 10000);
  for (const auto& [name, half] : {std::pair{"t2va.rope_cos", &clip.cos}, std::pair{"t2va.rope_sin", &clip.sin}}) {
    std::vector<float> both;  // the reference repeats the angles
    for (auto row = half->begin(); row != half->end(); row += 12) {
      both.insert(both.end(), row, row + 12);
      both.insert(both.end(), row, row + 12);
    }
    goldens.expect_close(name, Tensor(both.data(), {clip.rows, 24}, DType::f32));
  }
}

}  // namespace
}  // namespace h3
