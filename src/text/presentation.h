// How a request is shown to the text encoder (spec/text.md 2): one row of tokens per label, vision block and prompt,
// each text encoded by a tokenizer call of its own. A keyframe is presented like a picture, so t2va, fl2va and ref2va
// are one rule over an ordered list of media.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "text/tokenizer.h"
#include "weights/model_config.h"

namespace h3 {

// Patches of one vision item: temporal blocks, rows, columns; rows and columns are even (spec/text.md 3.4, 3.5).
struct VisionGrid {
  std::int64_t blocks = 1, rows = 0, columns = 0;
  std::int64_t patches_per_block() const { return rows * columns; }
  std::int64_t patches() const { return blocks * rows * columns; }
  bool operator==(const VisionGrid&) const = default;
};

// One keyframe or reference. A sound has no grid; a clip has a time in seconds for each temporal block.
struct PresentedMedia {
  enum class Kind : std::uint8_t { picture, clip, sound };
  Kind kind = Kind::picture;
  VisionGrid grid;
  std::vector<double> block_times;  // clips: grid.blocks of them (text/clip_sampling.h)
  bool soundtrack = false;          // clips: whether their sound is a reference too
};

struct PresentationRequest {
  std::string prompt;                 // UTF-8, used byte for byte
  std::vector<PresentedMedia> media;  // keyframes: first, then last; references: in the order of the request
};

struct PresentationLimits {
  std::int64_t prompt_tokens = 32768;
  std::int64_t rows = 262144;
};

// A stretch of rows that came from one thing.
struct PresentationSegment {
  enum class Kind : std::uint8_t { label, time, picture, clip_block, prompt };
  Kind kind = Kind::prompt;
  std::int64_t first_row = 0, rows = 0;
  std::int64_t media = -1;  // index into the request's media; -1: the prompt
};

// Values of PresentedRows::types, which steer positions (spec/text.md 2.6).
enum class RowType : std::uint8_t { text = 0, picture = 1, clip = 2 };

struct Presentation {
  std::vector<std::int32_t> ids;
  std::vector<std::uint8_t> tags;  // 1 text, 0 vision (markers included); what the transformer is told
  std::vector<RowType> types;      // which rows take vision features (markers are text here)
  std::array<std::vector<std::int32_t>, 3> positions;  // time, row, column of each row (spec/text.md 5.4)
  std::vector<PresentationSegment> segments;

  std::int64_t rows() const { return static_cast<std::int64_t>(ids.size()); }
  // Rows that take vision features, in order; features come in the order of the request's media.
  std::vector<std::int32_t> vision_rows() const;
};

// Throws UserError naming the prompt where it is empty, not UTF-8, holds a reserved token (<|image_pad|>,
// <|video_pad|>) or is too long, and where all rows together are too many; and naming the model where its tokenizer and
// configuration disagree about the vision tokens.
Presentation present(const Tokenizer& tokenizer, const TextConfig& config, const PresentationRequest& request,
                     const PresentationLimits& limits = {});

}  // namespace h3
