// The command line of a command: options, words and overrides told apart, and refusals that name what would be right.
#include "commands/command_line.h"

#include <gtest/gtest.h>

#include "commands/run_command_options.h"
#include "support/checks.h"

namespace h3::test {

namespace po = boost::program_options;

namespace {

using Words = std::vector<std::string>;

po::options_description some_options() {
  po::options_description options;
  options.add_options()("count", po::value<int>()->value_name("N")->default_value(5), "how many")(
      "model", po::value<std::string>()->value_name("DIR"), "which")("json", "print JSON");
  return options;
}

CommandLine line_of(const Words& words, bool overrides = true) {
  return {{"try", "tries", "WORDS", "Tries words.", {"h3render try this"}, "more to say"},
          some_options(),
          words,
          overrides};
}

std::string refusal(const Words& words) {
  return message_of<UserError>([&] { line_of(words); });
}

CommandLine run_line(const Words& words) {
  po::options_description options;
  add_run_options(options);
  return {{"run", "runs", "", "", {}, ""}, options, words, true};
}

RunOptions run_options_of(const Words& words, std::vector<std::string>& scene_overrides) {
  return run_options_from(run_line(words), scene_overrides);
}

}  // namespace

TEST(CommandLine, TellsOptionsWordsAndOverridesApart) {
  const CommandLine line =
      line_of({"a.json", "--count", "7", "seed=5", "dir/b=c.json", "--model=m", "output.wav=true"});
  EXPECT_EQ(line.words(), (Words{"a.json", "dir/b=c.json"}));
  EXPECT_EQ(line.overrides(), (Words{"seed=5", "output.wav=true"}));
  EXPECT_EQ(line.get<int>("count"), 7);
  EXPECT_EQ(line.required("model"), "m");
  EXPECT_FALSE(line.has("json"));
  EXPECT_FALSE(line.help_asked());
}

TEST(CommandLine, TakesOverridesAsTheyAre) {
  const Words words{"prompt=a = b --c", "prompt=", "sigmas=[1, 0.5, 0]", "name=\"x\""};
  EXPECT_EQ(line_of(words).overrides(), words);
  EXPECT_EQ(line_of({"./a=b.json", "=5", "a-b=5", "--", "--count=5"}).words(),
            (Words{"./a=b.json", "=5", "a-b=5", "--count=5"}));
}

TEST(CommandLine, WithoutOverridesEveryWordIsAWord) {
  const CommandLine line = line_of({"a=b", "c"}, false);
  EXPECT_EQ(line.words(), (Words{"a=b", "c"}));
  EXPECT_TRUE(line.overrides().empty());
}

TEST(CommandLine, KnowsDefaultsAndWhatWasNotGiven) {
  const CommandLine line = line_of({});
  EXPECT_EQ(line.get<int>("count"), 5);
  EXPECT_EQ(line.get_or<std::string>("model", "other"), "other");
  const std::string message = message_of<UserError>([&] { line.required("model"); });
  expect_has(message, "h3render try");
  expect_has(message, "--model");
  expect_has(message, "is missing");
}

TEST(CommandLine, RefusesUnknownOptionsWithTheNearestName) {
  expect_has(refusal({"--modell", "m"}), "--modell");
  expect_has(refusal({"--modell", "m"}), "did you mean --model?");
  expect_has(refusal({"--quit"}), "did you mean --quiet?");
  expect_has(refusal({"--jsonlog=x"}), "did you mean --json-log?");
  EXPECT_EQ(refusal({"--something-else"}).find("did you mean"), std::string::npos);
  expect_has(refusal({"-x"}), "-x");
  // No guessing: the beginning of an option is not the option.
  expect_has(refusal({"--mod", "m"}), "--mod");
}

TEST(CommandLine, RefusesMissingAndMalformedValues) {
  expect_has(refusal({"--model"}), "model");
  expect_has(refusal({"--count", "many"}), "count");
  expect_has(refusal({"--count", "7", "--count", "8"}), "count");
  expect_has(refusal({"--json=yes"}), "json");
}

TEST(CommandLine, HelpHoldsEverything) {
  for (const char* word : {"--help", "-h"}) {
    const CommandLine line = line_of({word});
    ASSERT_TRUE(line.help_asked());
    const std::string text = line.help_text();
    for (const char* part : {"h3render try: tries", "Usage: h3render try WORDS", "Tries words.", "--count N (=5)",
                             "how many", "--json-log FILE", "--quiet", "more to say", "  h3render try this\n"})
      expect_has(text, part);
  }
}

TEST(CommandLine, HoldsTheLogsOptions) {
  EXPECT_EQ(line_of({}).log().level, "info");
  const LogOptions log = line_of({"--log-level", "debug", "--quiet", "--json-log", "l.json"}).log();
  EXPECT_EQ(log.level, "debug");
  EXPECT_TRUE(log.quiet);
  EXPECT_EQ(log.json_file, "l.json");
}

TEST(CountsOf, ReadsWholeNumbers) {
  EXPECT_EQ(counts_of("1", "--ranks", 1), (std::vector<std::int64_t>{1}));
  EXPECT_EQ(counts_of("1,2,48,1", "--ranks", 1), (std::vector<std::int64_t>{1, 2, 48, 1}));
  EXPECT_EQ(counts_of("0,-3", "--x", -3), (std::vector<std::int64_t>{0, -3}));
  EXPECT_EQ(counts_of("9223372036854775807", "--x", 1), (std::vector<std::int64_t>{INT64_MAX}));
}

TEST(CountsOf, RefusesAnythingElse) {
  for (const char* text : {"", ",", "1,", ",1", "1,,2", "1;2", "1 2", " 1", "1 ", "two", "1.5", "0", "-1", "1,0", "+1",
                           "0x2", "9223372036854775808"}) {
    const std::string message = message_of<UserError>([&] { counts_of(text, "--ranks", 1); });
    expect_has(message, "--ranks");
    expect_has(message, "whole numbers from 1 up");
  }
}

TEST(RunCommandOptions, FlagsWinOverOverrides) {
  std::vector<std::string> scene;
  const RunOptions options = run_options_of(
      {"exchange_chunks=3", "--exchange-chunks", "5", "device=cpu", "share_gpus=true", "keep_going=false"}, scene);
  EXPECT_EQ(options.exchange_chunks, 5);
  EXPECT_EQ(options.device, "cpu");
  EXPECT_TRUE(options.share_gpus);
  EXPECT_FALSE(options.keep_going);
  EXPECT_TRUE(scene.empty());
}

TEST(RunCommandOptions, LeaveTheRestToTheScenes) {
  std::vector<std::string> scene;
  const RunOptions options =
      run_options_of({"seed=5", "shares=2,1", "output.wav=true", "output={\"wav\": true}", "--output", "out"}, scene);
  EXPECT_EQ(scene, (Words{"seed=5", "output.wav=true", "output={\"wav\": true}"}));
  EXPECT_EQ(options.shares, "2,1");
  EXPECT_EQ(options.output, "out");
}

TEST(RunCommandOptions, RefuseWrongValuesHoweverTheyAreGiven) {
  std::vector<std::string> scene;
  for (const Words& words : {Words{"--exchange", "all"}, Words{"exchange=all"}})
    expect_has(message_of<UserError>([&] { run_options_of(words, scene); }), "--exchange");
}

TEST(RunCommandOptions, AddsWhatIsAskedFor) {
  po::options_description all, some;
  add_run_options(all);
  add_run_options(some, {"model", "shares"});
  EXPECT_EQ(all.options().size(), run_option_help().size());
  EXPECT_EQ(some.options().size(), 2u);
}

TEST(SceneKeysText, NamesEveryKey) {
  const std::string text = scene_keys_text();
  for (const char* part : {"  prompt (text", "  frames (17n + 5, default 124)", "  output.crf (0 to 51, default 18)"})
    expect_has(text, part);
}

}  // namespace h3::test
