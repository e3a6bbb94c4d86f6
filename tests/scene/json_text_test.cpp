#include "scene/json_text.h"

#include "scene/helpers.h"
#include "scene/utf8.h"

namespace h3::test {

static std::string refused(const std::string& text) {
  return refusal([&] { parse_json(text, "f.json"); });
}

TEST(JsonText, KeepsOrderAndWholeNumbers) {
  const Json json = parse_json("\xef\xbb\xbf{\"b\": 18446744073709551615,\r\n \"a\": -1}\r\n", "f");
  EXPECT_EQ(json.dump(), "{\"b\":18446744073709551615,\"a\":-1}");
}

TEST(JsonText, RefusesDuplicateKeysWithTheirPath) {
  expect_has(refused("{\"a\": 1, \"a\": 1}"), "f.json: a: is given twice");
  expect_has(refused("{\"output\": {\"wav\": true, \"wav\": false}}"), "output.wav: is given twice");
  expect_has(refused("[{\"a\": {\"b\": [{\"c\": 1, \"c\": 2}]}}]"), "a.b.c: is given twice");
  EXPECT_NO_THROW(parse_json("[{\"a\": 1}, {\"a\": 1}]", "f"));
  EXPECT_NO_THROW(parse_json("{\"a\": {\"a\": 1}}", "f"));
}

TEST(JsonText, RefusesWhatIsNotJsonWithThePlace) {
  expect_has(refused("{\"a\": 1,\n \"b\": }"), "line 2, column 7");
  for (const char* text : {"", " ", "{", "[1,]", "{\"a\": NaN}", "{\"a\": 1e999}", "{a: 1}", "{\"a\": 1} x", "// c\n{}",
                           "{\"a\": \"\\ud800\"}", "{\"a\": \"line\nbreak\"}", "{\"a\": 01}", "é"})
    expect_has(refused(text), "is not valid JSON");
}

TEST(JsonText, RefusesInvalidUtf8WithTheOffset) {
  expect_has(refused("{\"a\": \"\xff\"}"), "byte 0xff at offset 7");
  expect_has(refused("\xff\xfe{\0"), "UTF-16");
  EXPECT_EQ(first_invalid_utf8("a\xc3\xa9\xe4\xbd\xa0\xf0\x9f\x98\x80"), std::nullopt);
  const struct {
    const char* text;
    std::size_t offset;
  } rows[] = {{"ab\x80", 2},           {"\xc0\x80", 0},
              {"\xc1\xbf", 0},         {"\xe0\x80\x80", 0},
              {"x\xed\xa0\x80", 1},    {"\xf0\x80\x80\x80", 0},
              {"\xf4\x90\x80\x80", 0}, {"\xf5\x80\x80\x80", 0},
              {"abc\xe4\xbd", 3},      {"\xc3", 0},
              {"\xe4(\xa0", 0}};
  for (const auto& row : rows) EXPECT_EQ(first_invalid_utf8(row.text), row.offset) << printable(row.text);
}

TEST(JsonText, RefusesAbsurdDepth) {
  expect_has(refused(std::string(100000, '[')), "nested more than");
  expect_has(refused(std::string(40, '[') + std::string(40, ']')), "nested more than");
  EXPECT_NO_THROW(parse_json(std::string(20, '[') + std::string(20, ']'), "f"));
}

TEST(JsonText, PrintableIsShortAndClean) {
  EXPECT_EQ(printable("a\n\xff\xc3\xa9"), "a\\x0a\\xff\xc3\xa9");
  EXPECT_EQ(printable(std::string(100, 'x'), 3), "xxx...");
  EXPECT_EQ(shown(Json("q\"")), "\"q\\\"\"");
}

}  // namespace h3::test
