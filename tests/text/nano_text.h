// The nano model's tokenizer, text configuration and text encoder weights, and the requests behind the stored goldens.
#pragma once

#include <string>
#include <vector>

#include "media/image.h"
#include "support/goldens.h"
#include "text/presentation.h"
#include "text/text_encoder.h"
#include "text/tokenizer.h"
#include "text/vision_input.h"
#include "weights/model_config.h"
#include "weights/weight_set.h"

namespace h3::test {

const Tokenizer& nano_tokenizer();
const TextConfig& nano_text_config();
// All tensors of the text encoder, in this dtype.
const WeightSet& nano_text_weights(DType dtype);

// The request of a case of text.json: prompt (decoded from the stored ids where media come before it) and media.
PresentationRequest golden_request(const Goldens& goldens, const std::string& name);
Presentation golden_presentation(const Goldens& goldens, const std::string& name);

// Stored tower outputs "PREFIX.merged", "PREFIX.deepstackI" as features, in this dtype.
VisionFeatures golden_features(Machine& machine, const Goldens& goldens, const std::string& prefix, DType dtype);

PresentedMedia picture_of(std::int64_t rows, std::int64_t columns);
// A clip of so many frames at 24 frames a second.
PresentedMedia clip_of(std::int64_t frames, std::int64_t rows, std::int64_t columns, bool soundtrack);
PresentedMedia sound_of();

// The frames of a stored PNG such as "png:clip".
std::vector<Image> golden_frames(const Goldens& goldens, const std::string& name);
// The prepared media of a case of text.json, packed for the tower, in presentation order.
std::vector<VisionPixels> golden_pixels(const Goldens& goldens, const std::string& name);

}  // namespace h3::test
