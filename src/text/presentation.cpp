#include "text/presentation.h"

#include <algorithm>
#include <charconv>

#include "base/error.h"

namespace h3 {
namespace {

using Segment = PresentationSegment;

// One fractional digit, half to even on the exact value, and the same in every locale.
std::string one_decimal(double seconds) {
  std::array<char, 64> text;
  const auto end = std::to_chars(text.data(), text.data() + text.size(), seconds, std::chars_format::fixed, 1);
  return std::string(text.data(), end.ptr);
}

void check_vision_tokens(const Tokenizer& tokenizer, const TextConfig& config) {
  const auto check = [&](const char* content, std::int64_t id) {
    const auto found = tokenizer.added_token(content);
    if (found && *found == id) return;
    throw UserError("text encoder", content, found ? fmt::format("{}", *found) : "none",
                    fmt::format("tokenizer and configuration agree ({})", id));
  };
  check("<|vision_start|>", config.vision_start);
  check("<|vision_end|>", config.vision_end);
  check("<|image_pad|>", config.image_token);
  check("<|video_pad|>", config.video_token);
}

// Appends rows of one kind after another and keeps the three lists in step.
class Builder {
 public:
  Builder(const Tokenizer& tokenizer, const TextConfig& config, const PresentationLimits& limits)
      : tokenizer_(tokenizer), config_(config), limits_(limits) {}

  void text(Segment::Kind kind, std::int64_t media, std::span<const std::int32_t> ids) {
    begin(kind, media, static_cast<std::int64_t>(ids.size()));
    out_.ids.insert(out_.ids.end(), ids.begin(), ids.end());
    out_.tags.insert(out_.tags.end(), ids.size(), 1);
    out_.types.insert(out_.types.end(), ids.size(), RowType::text);
    advance_text(ids.size());
  }
  void label(Segment::Kind kind, std::int64_t media, const std::string& text_) {
    text(kind, media, tokenizer_.encode(text_, "label"));
  }

  // One picture, or one temporal block of a clip: markers around its merged patches.
  void vision(const PresentedMedia& item, std::int64_t media) {
    const bool picture = item.kind == PresentedMedia::Kind::picture;
    const std::int64_t rows = item.grid.rows / 2, columns = item.grid.columns / 2;
    begin(picture ? Segment::Kind::picture : Segment::Kind::clip_block, media, rows * columns + 2);
    marker(config_.vision_start);
    const auto pads = static_cast<std::size_t>(rows * columns);
    out_.ids.insert(out_.ids.end(), pads,
                    static_cast<std::int32_t>(picture ? config_.image_token : config_.video_token));
    out_.tags.insert(out_.tags.end(), pads, 0);
    out_.types.insert(out_.types.end(), pads, picture ? RowType::picture : RowType::clip);
    for (std::int64_t r = 0; r < rows; ++r) {
      for (std::int64_t c = 0; c < columns; ++c) push_position(next_, next_ + r, next_ + c);
    }
    next_ += std::max(rows, columns);
    marker(config_.vision_end);
  }

  Presentation take() { return std::move(out_); }

 private:
  void begin(Segment::Kind kind, std::int64_t media, std::int64_t rows) {
    if (out_.rows() + rows > limits_.rows) {
      throw UserError("", media < 0 ? "prompt" : fmt::format("media {}", media + 1),
                      fmt::format("at least {} rows", out_.rows() + rows),
                      fmt::format("media and prompt take at most {} rows of the text encoder", limits_.rows));
    }
    out_.segments.push_back({kind, out_.rows(), rows, media});
  }
  void marker(std::int64_t id) {
    out_.ids.push_back(static_cast<std::int32_t>(id));
    out_.tags.push_back(0);
    out_.types.push_back(RowType::text);
    advance_text(1);
  }
  void advance_text(std::size_t rows) {
    for (std::size_t i = 0; i < rows; ++i, ++next_) push_position(next_, next_, next_);
  }
  void push_position(std::int64_t time, std::int64_t row, std::int64_t column) {
    out_.positions[0].push_back(static_cast<std::int32_t>(time));
    out_.positions[1].push_back(static_cast<std::int32_t>(row));
    out_.positions[2].push_back(static_cast<std::int32_t>(column));
  }

  const Tokenizer& tokenizer_;
  const TextConfig& config_;
  const PresentationLimits& limits_;
  Presentation out_;
  std::int64_t next_ = 0;  // position of the next text row
};

void check_media(const PresentedMedia& item) {
  if (item.kind == PresentedMedia::Kind::sound) return;
  const VisionGrid& grid = item.grid;
  H3_CHECK(grid.rows > 0 && grid.columns > 0 && grid.rows % 2 == 0 && grid.columns % 2 == 0 && grid.blocks > 0,
           fmt::format("grid {} x {} x {}", grid.blocks, grid.rows, grid.columns));
  const bool clip = item.kind == PresentedMedia::Kind::clip;
  CHECK_EQ(static_cast<std::int64_t>(item.block_times.size()), clip ? grid.blocks : 0);
  H3_CHECK(clip || grid.blocks == 1, "a picture is one block");
}

std::vector<std::int32_t> prompt_tokens(const Tokenizer& tokenizer, const TextConfig& config, const std::string& prompt,
                                        const PresentationLimits& limits) {
  if (prompt.empty()) throw UserError("", "prompt", "", "a prompt has at least one character");
  std::vector<std::int32_t> ids = tokenizer.encode(prompt);
  for (const std::int64_t reserved : {config.image_token, config.video_token}) {
    if (std::find(ids.begin(), ids.end(), reserved) == ids.end()) continue;
    const auto id = static_cast<std::int32_t>(reserved);
    throw UserError("", "prompt", tokenizer.decode({&id, 1}), "this token is reserved for pictures and clips");
  }
  if (static_cast<std::int64_t>(ids.size()) > limits.prompt_tokens) {
    throw UserError("", "prompt", fmt::format("{} tokens", ids.size()),
                    fmt::format("a prompt has at most {} tokens", limits.prompt_tokens));
  }
  return ids;
}

}  // namespace

std::vector<std::int32_t> Presentation::vision_rows() const {
  std::vector<std::int32_t> out;
  for (std::size_t i = 0; i < types.size(); ++i) {
    if (types[i] != RowType::text) out.push_back(static_cast<std::int32_t>(i));
  }
  return out;
}

Presentation present(const Tokenizer& tokenizer, const TextConfig& config, const PresentationRequest& request,
                     const PresentationLimits& limits) {
  check_vision_tokens(tokenizer, config);
  const std::vector<std::int32_t> prompt = prompt_tokens(tokenizer, config, request.prompt, limits);
  Builder builder(tokenizer, config, limits);
  std::int64_t pictures = 0, clips = 0, sounds = 0;
  for (std::int64_t i = 0; i < static_cast<std::int64_t>(request.media.size()); ++i) {
    const PresentedMedia& item = request.media[static_cast<std::size_t>(i)];
    check_media(item);
    const bool clip = item.kind == PresentedMedia::Kind::clip;
    if (item.kind == PresentedMedia::Kind::sound || (clip && item.soundtrack)) {
      builder.label(Segment::Kind::label, i, fmt::format("<Audio {}>: ", ++sounds));
    }
    if (item.kind == PresentedMedia::Kind::picture) {
      builder.label(Segment::Kind::label, i, fmt::format("<Picture {}>: ", ++pictures));
      builder.vision(item, i);
    }
    if (!clip) continue;
    builder.label(Segment::Kind::label, i, fmt::format("<Video {}>: ", ++clips));
    for (const double seconds : item.block_times) {
      builder.label(Segment::Kind::time, i, fmt::format("<{} seconds>", one_decimal(seconds)));
      builder.vision(item, i);
    }
  }
  builder.text(Segment::Kind::prompt, -1, prompt);
  return builder.take();
}

}  // namespace h3
