#include "scene/scene_files.h"

#include "scene/helpers.h"

namespace h3::test {

static std::vector<std::string> names_of(const SceneList& list) {
  std::vector<std::string> names;
  for (const Scene& s : list.scenes) names.push_back(s.name);
  return names;
}

using Names = std::vector<std::string>;

TEST(SceneFiles, OneSceneArraysAndLines) {
  const TemporaryFolder folder;
  const auto one = write_into(folder, "one.json", "{\"prompt\": \"a\", \"first_frame\": \"f.png\"}");
  const auto many = write_into(folder, "many.json", "[{\"prompt\": \"b\"}, {\"prompt\": \"c\", \"name\": \"sea\"}]");
  const auto lines = write_into(folder, "lines.jsonl", "{\"prompt\": \"d\"}\r\n\r\n  \n{\"prompt\": \"e\"}");
  const SceneList list = load_scenes({one, many, lines});
  list.require_all_good();
  EXPECT_EQ(names_of(list), (Names{"one", "many-1", "sea", "lines-1", "lines-2"}));
  EXPECT_EQ(list.scenes[0].first_frame->path, folder.path() / "f.png");
  EXPECT_EQ(list.scenes[2].where, many.string() + ", scene 2");
  EXPECT_EQ(list.scenes[4].where, lines.string() + ", line 4");
}

TEST(SceneFiles, FoldersGiveTheirJsonByName) {
  const TemporaryFolder folder;
  write_into(folder, "b.json", "{\"prompt\": \"b\"}");
  write_into(folder, "a.json", "[{\"prompt\": \"a\"}]");
  write_into(folder, ".hidden.json", "x");
  write_into(folder, "notes.txt", "x");
  EXPECT_EQ(names_of(load_scenes({folder.path()})), (Names{"a-1", "b"}));
  const TemporaryFolder empty;
  expect_has(load_scenes({empty.path()}).bad.at(0).message, "holds no .json files");
}

TEST(SceneFiles, MarksAndLineEndingsChangeNothing) {
  const TemporaryFolder folder;
  const std::string text = "{\n\"prompt\": \"caf\xc3\xa9\\r\\n\",\n\"seed\": 7\n}\n";
  std::string windows = "\xef\xbb\xbf";
  for (const char c : text) windows += c == '\n' ? std::string("\r\n") : std::string(1, c);
  const SceneList plain = load_scenes({write_into(folder, "plain.json", text)});
  const SceneList marked = load_scenes({write_into(folder, "marked.json", windows)});
  const SceneList line =
      load_scenes({write_into(folder, "line.jsonl", "\xef\xbb\xbf{\"prompt\": \"caf\xc3\xa9\\r\\n\"}\r\n")});
  EXPECT_EQ(plain.scenes.at(0).prompt, "caf\xc3\xa9\r\n");
  EXPECT_EQ(marked.scenes.at(0).prompt, plain.scenes[0].prompt);
  EXPECT_EQ(line.scenes.at(0).prompt, plain.scenes[0].prompt);
}

TEST(SceneFiles, EveryFaultIsReported) {
  const TemporaryFolder folder;
  const auto mixed = write_into(folder, "mixed.json",
                                "[{\"prompt\": \"a\"}, {\"prompt\": \"\", \"name\": \"sea\"}, 3, {\"prompt\": \"b\"}]");
  const auto lines =
      write_into(folder, "lines.jsonl", "{\"prompt\": \"d\"}\nnot json\n{\"prompt\": \"e\", \"seed\": -1}\n");
  const auto invalid = write_into(folder, "invalid.json", "{\"prompt\": \"a\xff\"}");
  const SceneList list = load_scenes({mixed, lines, invalid, folder.path() / "gone.json"});
  EXPECT_EQ(names_of(list), (Names{"mixed-1", "mixed-4", "lines-1"}));
  ASSERT_EQ(list.bad.size(), 6u);
  EXPECT_EQ(list.bad[0].name, "sea");
  expect_has(list.bad[0].message, "mixed.json, scene 2: prompt");
  expect_has(list.bad[1].message, "mixed.json, scene 3: 3: expected a scene");
  expect_has(list.bad[2].message, "lines.jsonl, line 2: is not valid JSON");
  expect_has(list.bad[3].message, "lines.jsonl, line 3: seed = -1");
  EXPECT_EQ(list.bad[3].name, "lines-3");
  expect_has(list.bad[4].message, "invalid.json: is not valid UTF-8: byte 0xff at offset 13");
  expect_has(list.bad[5].message, "gone.json: cannot be read");
  const std::string all = refusal([&] { list.require_all_good(); });
  EXPECT_EQ(std::count(all.begin(), all.end(), '\n'), 5);
  for (const char* text : {"[]", "", "\n\n"}) {
    EXPECT_EQ(load_scenes({write_into(folder, "e.json", text)}).bad.size(), 1u);
    EXPECT_EQ(load_scenes({write_into(folder, "e.jsonl", text)}).bad.size(), 1u);
  }
}

TEST(SceneFiles, NamesDiffer) {
  const TemporaryFolder folder;
  const auto a =
      write_into(folder, "a.json", "[{\"prompt\": \"x\", \"name\": \"n\"}, {\"prompt\": \"y\", \"name\": \"n\"}]");
  const SceneList list = load_scenes({a});
  EXPECT_EQ(list.scenes.size(), 1u);
  expect_has(list.bad.at(0).message, "scene 2: name = n: is also the name of " + a.string() + ", scene 1");
  const auto one = write_into(folder, "one.json", "{\"prompt\": \"x\"}");
  EXPECT_EQ(load_scenes({one, one}).bad.size(), 1u);
  expect_has(load_scenes({write_into(folder, "-x.json", "{\"prompt\": \"x\"}")}).bad.at(0).message,
             "taken from the file");
}

TEST(SceneFiles, OverridesReachEveryScene) {
  const TemporaryFolder folder;
  const auto a = write_into(folder, "a.json", "[{\"prompt\": \"x\", \"seed\": 1}, {\"prompt\": \"y\"}, 5]");
  const SceneList list = load_scenes({a}, {parse_override("seed=9"), parse_override("output.wav=true")});
  EXPECT_EQ(list.bad.size(), 1u);
  for (const Scene& s : list.scenes) {
    EXPECT_EQ(s.seed, 9u);
    EXPECT_TRUE(s.output.wav);
  }
}

}  // namespace h3::test
