// The words that scene files use for the enumerations of scene.h, in the order of the enumerators. One list serves
// parsing, writing and the guide.
#pragma once

#include <array>
#include <cstddef>
#include <string>
#include <string_view>

#include "scene/scene.h"

namespace h3 {

template <typename E>
struct Choices;

template <>
struct Choices<FramesPolicy> {
  static constexpr std::array<std::string_view, 2> names{"strict", "snap"};
};
template <>
struct Choices<SamplerKind> {
  static constexpr std::array<std::string_view, 2> names{"euler", "res_multistep"};
};
template <>
struct Choices<AudioCorrection> {
  static constexpr std::array<std::string_view, 2> names{"carried", "own"};
};
template <>
struct Choices<NoiseRecipe> {
  static constexpr std::array<std::string_view, 3> names{"diffusers", "original", "comfy"};
};
template <>
struct Choices<SequenceLayout> {
  static constexpr std::array<std::string_view, 2> names{"diffusers", "comfy"};
};
template <>
struct Choices<Quantize> {
  static constexpr std::array<std::string_view, 2> names{"round", "trunc"};
};
template <>
struct Choices<AudioTrim> {
  static constexpr std::array<std::string_view, 2> names{"frames", "none"};
};
template <>
struct Choices<AlphaRule> {
  static constexpr std::array<std::string_view, 2> names{"drop", "white"};
};
template <>
struct Choices<ReferenceKind> {
  static constexpr std::array<std::string_view, 3> names{"image", "video", "audio"};
};
template <>
struct Choices<ReferenceSize> {
  static constexpr std::array<std::string_view, 3> names{"full", "match", "max"};
};
template <>
struct Choices<Posterior> {
  static constexpr std::array<std::string_view, 2> names{"sample42", "mean"};
};

template <typename E>
std::string_view name_of(E value) {
  return Choices<E>::names[static_cast<std::size_t>(value)];
}

// "strict or snap", "diffusers, original or comfy"
template <typename E>
std::string choice_list() {
  const auto& names = Choices<E>::names;
  std::string text;
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (i > 0) text += i + 1 == names.size() ? " or " : ", ";
    text += names[i];
  }
  return text;
}

}  // namespace h3
