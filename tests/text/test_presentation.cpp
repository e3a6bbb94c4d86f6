#include "text/presentation.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "base/file.h"
#include "support/goldens.h"
#include "text/clip_sampling.h"
#include "text/nano_text.h"

namespace h3 {
namespace {

using test::clip_of;
using test::picture_of;
using test::sound_of;

Presentation present_nano(const std::string& prompt, std::vector<PresentedMedia> media = {},
                          const PresentationLimits& limits = {}) {
  return present(test::nano_tokenizer(), test::nano_text_config(), {prompt, std::move(media)}, limits);
}

template <typename T>
void expect_equal(const test::Goldens& goldens, const std::string& name, const std::vector<T>& actual,
                  std::int64_t offset = 0) {
  const Tensor expected = goldens.at(name);
  const std::int64_t* values = expected.as<std::int64_t>() + offset;
  for (std::size_t i = 0; i < actual.size(); ++i) {
    ASSERT_EQ(static_cast<std::int64_t>(actual[i]), values[i]) << name << " row " << i;
  }
}

void expect_case(const test::Goldens& goldens, const std::string& name, const Presentation& p) {
  ASSERT_EQ(p.rows(), goldens.at(name + ".ids").size(0)) << name;
  expect_equal(goldens, name + ".ids", p.ids);
  expect_equal(goldens, name + ".tags", p.tags);
  expect_equal(goldens, name + ".token_types", p.types);
  for (std::size_t axis = 0; axis < 3; ++axis) {
    expect_equal(goldens, name + ".position_ids", p.positions[axis], static_cast<std::int64_t>(axis) * p.rows());
  }
  std::int64_t row = 0;
  for (const auto& segment : p.segments) {
    EXPECT_EQ(segment.first_row, row) << name;
    row += segment.rows;
  }
  EXPECT_EQ(row, p.rows()) << name;
}

TEST(Presentation, AgreesWithStoredRequests) {
  const test::Goldens goldens("text");
  for (const auto& [name, meta] : goldens.json().at("meta").at("cases").items()) {
    expect_case(goldens, name, test::golden_presentation(goldens, name));
  }
}

TEST(Presentation, LabelsCountEachKindInOrder) {
  const auto p = present_nano("x", {sound_of(), clip_of(30, 2, 2, true), picture_of(2, 2), clip_of(13, 2, 2, true),
                                    sound_of(), sound_of(), picture_of(2, 2)});
  std::string text;
  for (const auto& segment : p.segments) {
    if (segment.kind != PresentationSegment::Kind::label && segment.kind != PresentationSegment::Kind::time) continue;
    text += test::nano_tokenizer().decode(
        std::span(p.ids).subspan(static_cast<std::size_t>(segment.first_row), static_cast<std::size_t>(segment.rows)));
  }
  EXPECT_EQ(text,
            "<Audio 1>: <Audio 2>: <Video 1>: <0.2 seconds><1.0 seconds><Picture 1>: <Audio 3>: <Video 2>: "
            "<0.2 seconds><Audio 4>: <Audio 5>: <Picture 2>: ");
}

TEST(Presentation, TenPicturesHaveATwoDigitLabel) {
  const auto p = present_nano("x", std::vector<PresentedMedia>(10, picture_of(2, 2)));
  const auto label = test::nano_tokenizer().encode("<Picture 10>: ");
  const auto& last = p.segments[p.segments.size() - 3];
  const auto begin = p.ids.begin() + last.first_row;
  EXPECT_EQ(std::vector<std::int32_t>(begin, begin + last.rows), label);
}

TEST(Presentation, MarkersAreVisionForTheTransformerAndTextForPositions) {
  const auto p = present_nano("x", {picture_of(48, 84)});
  const std::int64_t label = p.segments[0].rows;
  ASSERT_EQ(p.segments[1].rows, 1010);
  const auto at = [](const auto& list, std::int64_t row) {
    return static_cast<int>(list[static_cast<std::size_t>(row)]);
  };
  EXPECT_EQ(at(p.tags, label), 0);
  EXPECT_EQ(at(p.types, label), 0);
  EXPECT_EQ(at(p.types, label + 1), 1);
  EXPECT_EQ(at(p.tags, label + 1009), 0);
  EXPECT_EQ(at(p.types, label + 1009), 0);
  EXPECT_EQ(at(p.tags, label + 1010), 1);
  // spec/text.md 2.7: 24 x 42 merged patches advance the positions by 42.
  const std::int64_t first = label + 1;
  EXPECT_EQ(at(p.positions[0], label + 1008), first);
  EXPECT_EQ(at(p.positions[1], label + 1008), first + 23);
  EXPECT_EQ(at(p.positions[2], label + 1008), first + 41);
  EXPECT_EQ(at(p.positions[0], label + 1009), first + 42);
  EXPECT_EQ(p.vision_rows().size(), 1008u);
  EXPECT_EQ(p.vision_rows().front(), first);
}

void expect_refused(const std::string& part, const std::string& prompt, std::vector<PresentedMedia> media = {},
                    const PresentationLimits& limits = {}) {
  try {
    present_nano(prompt, std::move(media), limits);
    ADD_FAILURE() << "accepted: " << prompt;
  } catch (const UserError& e) {
    EXPECT_NE(std::string(e.what()).find(part), std::string::npos) << e.what();
  }
}

TEST(Presentation, RefusesBadPrompts) {
  expect_refused("at least one character", "");
  expect_refused("<|image_pad|>", "a <|image_pad|> b");
  expect_refused("<|video_pad|>", "a <|video_pad|> b", {picture_of(2, 2)});
  expect_refused("offset 1", "a\xff");
  expect_refused("3 tokens", "123", {}, {2, 100});
  EXPECT_EQ(present_nano("12", {}, {2, 100}).rows(), 2);
  expect_refused("media 1", "1", {picture_of(20, 20)}, {100, 100});
  expect_refused("prompt", "1234567", {}, {100, 6});
  EXPECT_EQ(present_nano(" ").rows(), 1);
  EXPECT_EQ(present_nano("<|vision_start|>").tags, (std::vector<std::uint8_t>{1}));
}

TEST(Presentation, RefusesAModelWhoseTokensDisagree) {
  TextConfig config = test::nano_text_config();
  config.video_token = 151656;
  EXPECT_THROW(present(test::nano_tokenizer(), config, {"x", {}}), UserError);
}

TEST(ClipSampling, TakesTwoFramesASecond) {
  // Rows of the table of spec/text.md 2.5: frames, samples, last block's time.
  struct Row {
    std::int64_t frames;
    std::size_t samples, blocks;
    double last;
  };
  for (const Row& row : {Row{124, 11, 6, 5.0}, Row{192, 16, 8, 7.25}, Row{243, 21, 11, 10.0}, Row{345, 29, 15, 14.0},
                         Row{362, 31, 16, 15.0}, Row{13, 2, 1, 0.25}}) {
    const auto frames = sampled_frames(row.frames);
    ASSERT_EQ(frames.size(), row.samples);
    EXPECT_EQ(frames.back(), 12 * (static_cast<std::int64_t>(row.samples) - 1));
    const auto times = block_times(static_cast<std::int64_t>(row.samples));
    ASSERT_EQ(times.size(), row.blocks);
    EXPECT_EQ(times.back(), row.last);
    EXPECT_EQ(times.front(), 0.25);
  }
  EXPECT_THROW(sampled_frames(12), UserError);
}

}  // namespace
}  // namespace h3
