#include "scene/prompt_rules.h"

#include <algorithm>
#include <array>
#include <optional>
#include <string_view>

#include "base/error.h"
#include "scene/utf8.h"

namespace h3 {

namespace {

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

// The number that starts at `i`, with the place behind it; at most nine digits.
struct Number {
  std::size_t value = 0, end = 0;
};
std::optional<Number> number_at(std::string_view text, std::size_t i) {
  Number n{0, i};
  while (n.end < text.size() && is_digit(text[n.end]) && n.end - i < 9)
    n.value = n.value * 10 + static_cast<std::size_t>(text[n.end++] - '0');
  if (n.end == i) return std::nullopt;
  return n;
}

struct Label {
  std::string_view word;  // "Picture", "Video", "Audio"
  std::size_t number = 0;
};

// All `<Picture 2>` and the like, in order.
std::vector<Label> labels_in(std::string_view prompt) {
  static constexpr std::array<std::string_view, 3> words{"Picture", "Video", "Audio"};
  std::vector<Label> labels;
  for (std::size_t i = prompt.find('<'); i != prompt.npos; i = prompt.find('<', i + 1)) {
    for (const std::string_view word : words) {
      const std::string_view rest = prompt.substr(i + 1);
      if (!rest.starts_with(word) || rest.substr(word.size(), 1) != " ") continue;
      const auto number = number_at(rest, word.size() + 1);
      if (number && rest.substr(number->end, 1) == ">") labels.push_back({word, number->value});
    }
  }
  return labels;
}

// How many of a label the presentation has (spec/text.md 2.3, 2.4): keyframes are pictures, and a clip may carry a
// soundtrack.
std::size_t given(const Scene& scene, std::string_view word, std::size_t sounds) {
  const std::size_t keyframes = (scene.first_frame ? 1u : 0u) + (scene.last_frame ? 1u : 0u);
  if (word == "Picture") return keyframes + scene.count(ReferenceKind::image);
  return word == "Video" ? scene.count(ReferenceKind::video) : sounds;
}

// Seconds of every "mm:ss" that stands alone ("00:07", not "100:07" or "16:9").
std::vector<std::size_t> times_in(std::string_view prompt) {
  std::vector<std::size_t> times;
  for (std::size_t i = prompt.find(':'); i != prompt.npos; i = prompt.find(':', i + 1)) {
    if (i < 2 || !is_digit(prompt[i - 1]) || !is_digit(prompt[i - 2])) continue;
    if (i >= 3 && (is_digit(prompt[i - 3]) || prompt[i - 3] == ':')) continue;
    const auto minutes = number_at(prompt.substr(0, i), i - 2), seconds = number_at(prompt, i + 1);
    if (minutes && seconds && seconds->end == i + 3 && seconds->value < 60)
      times.push_back(minutes->value * 60 + seconds->value);
  }
  return times;
}

}  // namespace

std::size_t most_sounds(const Scene& scene) {
  return static_cast<std::size_t>(
      std::count_if(scene.references.begin(), scene.references.end(), [](const Reference& r) {
        return r.kind == ReferenceKind::audio || (r.kind == ReferenceKind::video && r.soundtrack);
      }));
}

void check_prompt_labels(const Scene& scene, std::size_t sounds) {
  if (scene.references.empty() && !scene.has_keyframes()) return;
  for (const Label& label : labels_in(scene.prompt)) {
    const std::size_t count = given(scene, label.word, sounds);
    if (label.number < 1 || label.number > count)
      throw UserError(scene.where, "prompt", fmt::format("<{} {}>", label.word, label.number),
                      fmt::format("names what is not there: the scene gives {}", count));
  }
}

std::vector<std::string> prompt_warnings(const Scene& scene, double seconds) {
  std::vector<std::string> warnings;
  const auto labels = labels_in(scene.prompt);
  if (scene.references.empty() && !scene.has_keyframes() && !labels.empty())
    warnings.push_back(fmt::format("prompt: <{} {}> is plain text in a scene without media", labels.front().word,
                                   labels.front().number));
  const auto times = times_in(scene.prompt);
  const auto latest = std::max_element(times.begin(), times.end());
  if (latest != times.end() && static_cast<double>(*latest) >= seconds)
    warnings.push_back(fmt::format("prompt: the time {:02}:{:02} lies past the end of the clip ({:.2f} s)",
                                   *latest / 60, *latest % 60, seconds));
  return warnings;
}

}  // namespace h3
