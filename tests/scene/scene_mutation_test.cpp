// Scene files with random damage: refused or read, never a crash, and what is read can be written and read again.
#include <cstdlib>
#include <random>

#include "scene/helpers.h"
#include "scene/scene_files.h"
#include "scene/scene_rules.h"
#include "scene/utf8.h"

namespace h3::test {

static const char* const seeds[] = {
    R"({"prompt": "A red circle moves right. [00:03] <Picture 1>", "width": 256, "height": 192, "frames": 22, "seed": 7})",
    R"([{"prompt": "a", "aspect": "16:9", "seconds": 5.167, "frames_policy": "snap"}, {"prompt": "b", "name": "n"}])",
    R"({"prompt": "p", "sigmas": [1, 0.5, 0], "references": [{"image": "a"}, {"audio": "b"}], "output": {"wav": true}})",
    "\xef\xbb\xbf{\"prompt\": \"\xe4\xbd\xa0\\ud83d\\ude00\", \"evaluations\": 4, \"shift\": 1e0}\r\n"};

static std::string damaged(std::string text, std::mt19937& random) {
  static const std::string likely = "{}[]\",:\\0123456789.-+eEutrfn \n\r\t<>";
  const std::size_t changes = 1 + random() % 4;
  for (std::size_t i = 0; i < changes && !text.empty(); ++i) {
    const std::size_t at = random() % text.size();
    const char c = random() % 2 ? likely[random() % likely.size()] : static_cast<char>(random());
    switch (random() % 5) {
      case 0:
        text[at] = c;
        break;
      case 1:
        text.insert(at, 1, c);
        break;
      case 2:
        text.erase(at, 1 + random() % 8);
        break;
      case 3:
        text.insert(at, text.substr(random() % text.size(), random() % 16));
        break;
      default:
        text.resize(at);
        break;
    }
  }
  return text;
}

static void read_damaged(const std::string& text) {
  const Json json = parse_json(text, "m.json");
  const Json list = json.is_array() ? json : Json::array({json});
  for (const Json& item : list) {
    Scene scene = scene_from_json(item, "m.json", "/");
    resolve(scene, {{192, 49152}, 6, 3});
    const Json written = to_json(scene);
    EXPECT_EQ(to_json(scene_from_json(parse_json(written.dump(), "w"), "w", "/")), written) << text;
  }
}

TEST(SceneMutations, NeverCrash) {
  std::mt19937 random(20240607);
  // H3RENDER_LONG_TESTS multiplies the rounds of mutation tests.
  const char* factor = std::getenv("H3RENDER_LONG_TESTS");
  const int rounds = 20000 * (factor ? std::max(1, std::atoi(factor)) : 1);
  int read = 0, refused = 0;
  for (int i = 0; i < rounds; ++i) {
    const std::string text = damaged(seeds[random() % std::size(seeds)], random);
    try {
      read_damaged(text);
      ++read;
    } catch (const UserError& e) {
      EXPECT_FALSE(first_invalid_utf8(e.what())) << "message is not UTF-8";
      EXPECT_NE(std::string(e.what()).find("m.json"), std::string::npos) << e.what();
      ++refused;
    }
  }
  EXPECT_GT(read, rounds / 50);
  EXPECT_GT(refused, rounds / 4);
}

}  // namespace h3::test
