#include "checkpoint/require_same.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "checkpoint/samples.h"

namespace h3::test {

using Json = nlohmann::ordered_json;

std::string key_of(const Json& expected, const Json& found, const std::vector<std::string>& ignored = {}) {
  const auto difference = first_difference(expected, found, ignored);
  return difference ? difference->key : "";
}

TEST(RequireSame, equal_values_in_any_order_of_keys) {
  EXPECT_EQ(key_of({{"a", 1}, {"b", {{"c", 2.5}}}}, {{"b", {{"c", 2.5}}}, {"a", 1}}), "");
  EXPECT_EQ(key_of(sample_inputs(1).identity(), sample_inputs(1).identity()), "");
}

TEST(RequireSame, names_the_differing_key) {
  const Json base = sample_inputs(1).identity();
  Json other = base;
  other["scene"]["prompt"] = "a blue square";
  EXPECT_EQ(key_of(base, other), "scene.prompt");
  other = base;
  other["numerics"]["stages"]["text"] = 2;
  EXPECT_EQ(key_of(base, other), "numerics.stages.text");
  other = base;
  other["adapters"].push_back({{"name", "turbo"}});
  EXPECT_EQ(key_of(base, other), "adapters[0]");
  other = base;
  other["model"] = "ffff";
  EXPECT_EQ(key_of(base, other), "model");
  other = base;
  other["scene"].erase("shift");
  EXPECT_EQ(key_of(base, other), "scene.shift");
  EXPECT_EQ(key_of(other, base), "scene.shift");
}

TEST(RequireSame, ignored_keys_may_differ) {
  EXPECT_EQ(key_of({{"scene", {{"output", {{"crf", 1}}}}}}, {{"scene", {{"output", {{"crf", 2}}}}}}, {"scene.output"}),
            "");
  EXPECT_EQ(key_of({{"scene", {{"output", 1}, {"seed", 1}}}}, {{"scene", {{"seed", 2}}}}, {"scene.output"}),
            "scene.seed");
}

TEST(RequireSame, the_message_has_file_key_and_both_values) {
  try {
    require_same({{"seed", 1}}, {{"seed", 2}}, "out/x.inputs.h5");
    FAIL();
  } catch (const UserError& e) {
    EXPECT_EQ(std::string(e.what()).find("out/x.inputs.h5: seed = 2: this run has 1;"), 0u) << e.what();
  }
  const auto long_text = first_difference({{"p", std::string(1000, 'x')}}, {{"p", 1}});
  EXPECT_LT(long_text->expected.size(), 200u);
}

}  // namespace h3::test
