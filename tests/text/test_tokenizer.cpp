#include "text/tokenizer.h"

#include <gtest/gtest.h>

#include <ctime>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <random>

#include "base/file.h"
#include "scene/utf8.h"
#include "support/goldens.h"
#include "support/temporary_folder.h"
#include "text/pretokenizer.h"
#include "text/unicode.h"

namespace h3 {
namespace {

namespace fs = std::filesystem;
using Ids = std::vector<std::int32_t>;

fs::path nano_tokenizer() {
  return fs::path(test::nano_path()) / "tokenizer";
}

const Tokenizer& nano() {
  static const Tokenizer tokenizer = Tokenizer::load(nano_tokenizer());
  return tokenizer;
}

// A second of a release build; sanitizers and debug builds may take ten times as long.
#if defined(NDEBUG) && !defined(__SANITIZE_ADDRESS__)
constexpr double kSecond = 1;
#else
constexpr double kSecond = 10;
#endif
double cpu_seconds_since(std::clock_t start) {
  return static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
}

std::vector<std::u32string> pieces(std::u32string_view text) {
  std::vector<std::u32string> out;
  std::size_t begin = 0;
  for (const std::size_t end : piece_ends(text)) {
    out.emplace_back(text.substr(begin, end - begin));
    begin = end;
  }
  EXPECT_EQ(begin, text.size());
  return out;
}

// A copy of the nano tokenizer's folder to damage.
class DamagedFolder : public test::TemporaryFolder {
 public:
  DamagedFolder() {
    for (const char* name : {"vocab.json", "merges.txt", "tokenizer_config.json"}) {
      fs::copy_file(nano_tokenizer() / name, path() / name);
    }
  }
  void write(const std::string& name, const std::string& content) const {
    std::ofstream(path() / name, std::ios::binary) << content;
  }
  void replace(const std::string& name, const std::string& from, const std::string& to) const {
    std::string content = read_file(path() / name);
    const auto at = content.find(from);
    ASSERT_NE(at, std::string::npos) << from;
    write(name, content.replace(at, from.size(), to));
  }
  // The message with which loading fails.
  std::string message() const {
    try {
      Tokenizer::load(path());
    } catch (const UserError& e) {
      return e.what();
    }
    return "";
  }
};

TEST(Tokenizer, AgreesWithStoredTexts) {
  const auto cases = nlohmann::json::parse(read_file(test::source_path("tests/goldens/tokenizer.json")));
  ASSERT_EQ(cases.size(), 51u);
  for (const auto& item : cases) {
    const auto text = item.at("text").get<std::string>();
    EXPECT_EQ(nano().encode(text), item.at("ids").get<Ids>()) << text;
  }
}

TEST(Tokenizer, ReadsTokenizerJsonWhereTheOtherFilesAreMissing) {
  const DamagedFolder folder;
  fs::remove(folder.path() / "merges.txt");
  fs::copy_file(nano_tokenizer() / "tokenizer.json", folder.path() / "tokenizer.json");
  const Tokenizer other = Tokenizer::load(folder.path());
  EXPECT_EQ(other.size(), nano().size());
  const std::string text = "A red circle <d>don't</d> moves 12 \xc3\xa9<|cutoff|>";
  EXPECT_EQ(other.encode(text), nano().encode(text));

  auto object = nlohmann::json::parse(read_file(folder.path() / "tokenizer.json"));
  for (auto& rule : object["model"]["merges"]) rule = rule[0].get<std::string>() + " " + rule[1].get<std::string>();
  folder.write("tokenizer.json", object.dump());
  EXPECT_EQ(Tokenizer::load(folder.path()).encode(text), nano().encode(text));
}

TEST(Tokenizer, GivesAdditionalTokensTheNextFreeIds) {
  EXPECT_EQ(nano().added_token("<|endoftext|>"), 515);
  EXPECT_EQ(nano().added_token("<d>"), 541);
  EXPECT_EQ(nano().added_token("<|caption_end|>"), 547);
  EXPECT_EQ(nano().added_token("<|caption_end|"), std::nullopt);
  EXPECT_EQ(nano().added_token(""), std::nullopt);
  EXPECT_EQ(nano().size(), 548);
}

TEST(Tokenizer, CutsOutTheLongestAddedToken) {
  const DamagedFolder folder;
  folder.replace("tokenizer_config.json", "\"<|caption_end|>\"", "\"<|caption_end|>\", \"<d>x\"");
  const Tokenizer tokenizer = Tokenizer::load(folder.path());
  EXPECT_EQ(tokenizer.encode("<d>x<d>"), (Ids{548, 541}));
}

TEST(Tokenizer, EncodesSegmentsOnTheirOwn) {
  // The space of a label never joins the text that follows (spec/text.md 1.7).
  Ids apart = nano().encode("<Audio 1>: ");
  const Ids prompt = nano().encode("A cat");
  apart.insert(apart.end(), prompt.begin(), prompt.end());
  EXPECT_NE(apart, nano().encode("<Audio 1>: A cat"));
}

TEST(Tokenizer, NamesTheByteThatIsNotUtf8) {
  const std::vector<std::pair<std::string, std::size_t>> bad = {{"ab\xff", 2},
                                                                {"\x80", 0},
                                                                {"\xc3", 0},
                                                                {"a\xc0\xaf", 1},
                                                                {"\xe0\x9f\x80", 0},
                                                                {"\xed\xa0\x80", 0},
                                                                {"\xf4\x90\x80\x80", 0},
                                                                {"\xf0\x8f\x80\x80", 0},
                                                                {"\xe4\xbd", 0},
                                                                {"x\xe4\xbdx", 1},
                                                                {"\xf5\x80\x80\x80", 0}};
  for (const auto& [text, offset] : bad) {
    EXPECT_EQ(first_invalid_utf8(text), offset);
    try {
      nano().encode(text);
      ADD_FAILURE() << "accepted";
    } catch (const UserError& e) {
      EXPECT_NE(std::string(e.what()).find(fmt::format("offset {}", offset)), std::string::npos) << e.what();
      EXPECT_NE(std::string(e.what()).find("prompt"), std::string::npos) << e.what();
    }
  }
  EXPECT_EQ(first_invalid_utf8("\xf4\x8f\xbf\xbf\xef\xbf\xbf\xed\x9f\xbf"), std::nullopt);
}

TEST(Tokenizer, RoundTripsRandomText) {
  std::mt19937 random(7);
  const std::u32string common = U" \n\r\t'aAsSdLrevm1½Ⅷ.,<|>e\u0301\u0327한\u1112\u1161\u11ab世ſ\u00a0\u3000😀\u200d\0";
  for (int round = 0; round < 3000; ++round) {
    std::u32string text;
    const auto length = random() % 40;
    for (std::size_t i = 0; i < length; ++i) {
      char32_t c = random() % 4 ? common[random() % common.size()] : static_cast<char32_t>(random() % 0x110000);
      if (c >= 0xd800 && c < 0xe000) c = U'x';
      text.push_back(c);
    }
    std::string bytes, composed;
    for (const char32_t c : text) append_utf8(c, bytes);
    EXPECT_EQ(decode_utf8(bytes), text);
    for (const char32_t c : to_nfc(text)) append_utf8(c, composed);
    EXPECT_EQ(nano().decode(nano().encode(bytes)), composed);
  }
}

TEST(Tokenizer, EncodesAMegabyteOfOneLetterInUnderASecond) {
  // Rules that build runs of 2, 4, ... 128 letters, so that every merge of a long piece happens.
  TokenizerFiles files = read_tokenizer_files(nano_tokenizer());
  files.added.clear();
  for (std::string run = "z"; run.size() < 128; run += run) {
    files.merges.emplace_back(run, run);
    files.vocabulary.emplace(run + run, static_cast<std::int32_t>(files.vocabulary.size()));
  }
  const Tokenizer tokenizer(files, "test");
  const std::string text(1 << 20, 'z');
  const std::clock_t start = std::clock();
  EXPECT_EQ(tokenizer.encode(text).size(), text.size() / 128);
  EXPECT_LT(cpu_seconds_since(start), kSecond);
}

TEST(Tokenizer, NormalizesLongRunsOfMarksQuickly) {
  std::string text = "a";
  for (int i = 0; i < 100000; ++i) text += "\xcc\x81\xcc\xa7";  // acute (class 230), cedilla (class 202)
  const std::clock_t start = std::clock();
  EXPECT_EQ(nano().decode(nano().encode(text)).size(), text.size() - 1);  // a and the first acute compose
  EXPECT_LT(cpu_seconds_since(start), kSecond);
}

TEST(Unicode, Composes) {
  EXPECT_EQ(to_nfc(U"e\u0301"), U"\u00e9");
  EXPECT_EQ(to_nfc(U"\u212b"), U"\u00c5");
  EXPECT_EQ(to_nfc(U"\u1112\u1161\u11ab"), U"\ud55c");
  EXPECT_EQ(to_nfc(U"\ub744\u11a7\u11a8x"), U"\ub744\u11a7\u11a8x");  // U+11A7 is no trailing consonant
  EXPECT_EQ(to_nfc(U"\ub744\u11a8"), U"\ub745");
  EXPECT_EQ(to_nfc(U"\u0958"), U"\u0915\u093c");  // excluded from composition
  EXPECT_EQ(to_nfc(U"a\u0327\u0301"), U"\u00e1\u0327");
  EXPECT_EQ(to_nfc(U"a\u0301\u0327"), U"\u00e1\u0327");
  EXPECT_EQ(to_nfc(U"\ufeffx"), U"\ufeffx");
}

TEST(Pretokenizer, CutsAsTheRegularExpression) {
  using P = std::vector<std::u32string>;
  EXPECT_EQ(pieces(U""), P{});
  EXPECT_EQ(pieces(U"don't we'LL"), (P{U"don", U"'t", U" we", U"'LL"}));
  EXPECT_EQ(pieces(U"'\u017fabc"), (P{U"'\u017f", U"abc"}));
  EXPECT_EQ(pieces(U"'x 'r"), (P{U"'x", U" '", U"r"}));
  EXPECT_EQ(pieces(U"12\u00bd"), (P{U"1", U"2", U"\u00bd"}));
  EXPECT_EQ(pieces(U"a  b"), (P{U"a", U" ", U" b"}));
  EXPECT_EQ(pieces(U"a  1"), (P{U"a", U" ", U" ", U"1"}));
  EXPECT_EQ(pieces(U"wait!!\n\n x"), (P{U"wait", U"!!\n\n", U" x"}));
  EXPECT_EQ(pieces(U" \n \r\n  "), (P{U" \n \r\n", U"  "}));
  EXPECT_EQ(pieces(U" ,\t,"), (P{U" ,", U"\t", U","}));
  EXPECT_EQ(pieces(U"\u0301x"), (P{U"\u0301x"}));
  EXPECT_EQ(pieces(U"x\u0301y"), (P{U"x", U"\u0301y"}));
  EXPECT_EQ(pieces(U"'"), (P{U"'"}));
}

TEST(TokenizerFiles, RefusesDamagedFiles) {
  const auto expect = [](const DamagedFolder& folder, const std::vector<std::string>& parts) {
    const std::string message = folder.message();
    for (const auto& part : parts) EXPECT_NE(message.find(part), std::string::npos) << message << "\nlacks " << part;
  };
  {
    const DamagedFolder folder;
    fs::remove(folder.path() / "vocab.json");
    expect(folder, {"tokenizer.json"});
  }
  {
    const DamagedFolder folder;
    fs::remove(folder.path() / "tokenizer_config.json");
    expect(folder, {"tokenizer_config.json"});
  }
  {
    const DamagedFolder folder;
    folder.write("vocab.json", "{\"a\": 0,");
    expect(folder, {"vocab.json", "not JSON"});
  }
  {
    const DamagedFolder folder;
    folder.write("vocab.json", "[1]");
    expect(folder, {"vocab.json"});
  }
  {
    const DamagedFolder folder;
    folder.write("vocab.json", "{\"a\": 0, \"b\": 2}");
    expect(folder, {"vocab.json", "b = 2"});
  }
  {
    const DamagedFolder folder;
    folder.write("vocab.json", "{\"a\": 0, \"b\": 0}");
    expect(folder, {"vocab.json", "b = 0"});
  }
  {
    const DamagedFolder folder;
    folder.write("vocab.json", "{\"a\": 0, \"b\": 1}");
    expect(folder, {"byte 0", "byte symbol"});
  }
  {
    const DamagedFolder folder;
    folder.write("merges.txt", "#version: 0.2\no n\no\n");
    expect(folder, {"merges.txt", "line 3"});
  }
  {
    const DamagedFolder folder;
    folder.write("merges.txt", "#version: 0.2\r\no n\r\n");
    expect(folder, {"merges.txt", "line 2"});
  }
  {
    const DamagedFolder folder;
    folder.write("merges.txt", "o n\no n\n");
    expect(folder, {"merge rule 2", "rule 1 is the same"});
  }
  {
    const DamagedFolder folder;
    folder.write("merges.txt", "o n\nq qq\n");
    expect(folder, {"merge rule 2", "qq"});
  }
  {
    const DamagedFolder folder;
    folder.replace("tokenizer_config.json", "\"lstrip\": false", "\"lstrip\": true");
    expect(folder, {"tokenizer_config.json", "lstrip"});
  }
  {
    const DamagedFolder folder;
    folder.replace("tokenizer_config.json", "\"516\"", "\"17\"");
    expect(folder, {"<|im_start|>", "17"});
  }
  {
    const DamagedFolder folder;
    folder.replace("tokenizer_config.json", "\"516\"", "\"5x6\"");
    expect(folder, {"5x6", "token ids"});
  }
  {
    const DamagedFolder folder;
    folder.replace("tokenizer_config.json", "<|im_start|>\",", "<|endoftext|>\",");
    expect(folder, {"<|endoftext|>", "an id of its own"});
  }
  {
    const DamagedFolder folder;
    folder.replace("tokenizer_config.json", "\"<|cutoff|>\"", "\"<|other|>\", \"<|cutoff|>\"");
    expect(folder, {"<|cutoff|>", "544", "543"});
  }
  {
    const DamagedFolder folder;
    folder.replace("tokenizer_config.json", "\"<d>\",", "");
    expect(folder, {"<d>", "no token"});
  }
}

}  // namespace
}  // namespace h3
