// The options of a run: one table that sets, documents and echoes them.
#include "render/run_options.h"

#include <gtest/gtest.h>

#include "support/checks.h"

namespace h3::test {

namespace {

RunOptions with(const std::string& name, const std::string& value) {
  RunOptions options;
  set_run_option(options, name, value);
  return options;
}

std::string refusal(const std::string& name, const std::string& value) {
  return message_of<UserError>([&] { with(name, value); });
}

std::vector<std::string> choices_of(const RunOptionHelp& option) {
  std::vector<std::string> choices;
  for (std::size_t at = 0; at <= option.value.size(); at = option.value.find('|', at) + 1) {
    choices.push_back(option.value.substr(at, option.value.find('|', at) - at));
    if (option.value.find('|', at) == std::string::npos) break;
  }
  return choices;
}

bool is_choice(const RunOptionHelp& option) {
  return option.value.find('|') != std::string::npos;
}

}  // namespace

TEST(RunOptions, EchoEveryOptionWithItsDefault) {
  const auto echoed = to_json(RunOptions());
  ASSERT_EQ(echoed.size(), run_option_help().size());
  for (const RunOptionHelp& option : run_option_help()) {
    ASSERT_TRUE(echoed.contains(option.name)) << option.name;
    const auto& value = echoed[option.name];
    const std::string text = value.is_string() ? value.get<std::string>() : value.dump();
    EXPECT_EQ(text, option.value.empty() ? "false" : option.default_value) << option.name;
    EXPECT_TRUE(is_run_option(option.name));
    EXPECT_FALSE(option.help.empty()) << option.name;
  }
}

// Whatever an option is set to is what the echo holds, under its own name and no other.
TEST(RunOptions, SetOneOptionEach) {
  const auto defaults = to_json(RunOptions());
  for (const RunOptionHelp& option : run_option_help()) {
    const std::string value = option.value.empty()           ? "true"
                              : is_choice(option)            ? choices_of(option).back()
                              : option.value == "N"          ? "7"
                              : option.value == "GIB"        ? "0.5"
                              : option.name == "fail"        ? "1:step:hang"
                              : option.name == "write-fault" ? "half:exit=9@2"
                                                             : "some/text";
    const auto echoed = to_json(with(option.name, value));
    for (const auto& [name, now] : echoed.items())
      EXPECT_EQ(now != defaults[name], name == option.name) << option.name << " = " << value << " changed " << name;
    const auto& now = echoed[option.name];
    EXPECT_EQ(now.is_string() ? now.get<std::string>() : now.dump(), value);
  }
}

TEST(RunOptions, AcceptEveryChoiceThatTheHelpNames) {
  for (const RunOptionHelp& option : run_option_help()) {
    if (!is_choice(option)) continue;
    for (const std::string& choice : choices_of(option))
      EXPECT_EQ(to_json(with(option.name, choice))[option.name], choice) << option.name;
  }
}

TEST(RunOptions, RefuseOtherChoicesWithTheNearest) {
  for (const RunOptionHelp& option : run_option_help()) {
    if (!is_choice(option)) continue;
    const std::string message = refusal(option.name, "something");
    expect_has(message, "--" + option.name);
    expect_has(message, "something");
    expect_has(message, option.value);
    EXPECT_FALSE(refusal(option.name, "").empty());
  }
  expect_has(refusal("exchange", "allgather"), "did you mean all-gather?");
  expect_has(refusal("device", "Cuda"), "did you mean cuda?");
}

TEST(RunOptions, RefuseCountsOutOfRange) {
  for (const char* value : {"", "-1", "1.5", "one", "1 ", " 1", "1e3", "0x1", "99999999999999999999"}) {
    expect_has(refusal("row-chunk", value), "--row-chunk");
    expect_has(refusal("row-chunk", value), "a whole number from 0 up");
  }
  expect_has(refusal("exchange-chunks", "0"), "from 1 up");
  EXPECT_EQ(with("row-chunk", "0").row_chunk, 0);
  EXPECT_EQ(with("checkpoint-steps", "0").checkpoint_steps, 0);
}

TEST(RunOptions, FlagsAreTrueWithoutAValue) {
  EXPECT_TRUE(with("keep-going", "").keep_going);
  EXPECT_TRUE(with("keep-going", "true").keep_going);
  EXPECT_FALSE(with("keep-going", "false").keep_going);
  expect_has(refusal("keep-going", "yes"), "true or false");
}

TEST(RunOptions, RefuseWhatIsNoOption) {
  for (const char* name : {"", "seed", "--model", "Model", "exchange_chunks", "exchange-chunk"}) {
    EXPECT_FALSE(is_run_option(name));
    expect_has(refusal(name, "1"), "is not an option of a run");
  }
}

}  // namespace h3::test
