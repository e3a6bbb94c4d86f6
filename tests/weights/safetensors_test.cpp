// The safetensors reader: what it accepts, and every kind of damage it must refuse by name.
#include "weights/safetensors.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstdlib>
#include <cstring>
#include <random>

#include "base/error.h"
#include "base/file.h"
#include "support/goldens.h"
#include "weights/model_files.h"

namespace h3 {
namespace {

using test::TemporaryFolder;
using test::user_error_of;

std::string file_bytes(const std::string& header, std::size_t data) {
  const std::uint64_t length = header.size();
  return fmt::format("{}{}{}", std::string_view(reinterpret_cast<const char*>(&length), 8), header,
                     std::string(data, 'x'));
}

class SafetensorsTest : public testing::Test {
 protected:
  // The error of a file with these bytes, which names the file.
  std::string error_of(const std::string& bytes) {
    test::write_text(path_, bytes);
    const std::string error = user_error_of([&] { SafetensorsFile file(path_); });
    EXPECT_NE(error.find(path_.string()), std::string::npos) << error;
    return error;
  }
  void expect_error(const std::string& bytes, const std::string& part) {
    const std::string error = error_of(bytes);
    EXPECT_NE(error.find(part), std::string::npos) << error << "\n  lacks: " << part;
  }
  TemporaryFolder folder_;
  std::filesystem::path path_ = folder_ / "x.safetensors";
};

constexpr const char* kGood =
    R"({"a":{"dtype":"F32","shape":[2,3],"data_offsets":[0,24]},"b":{"dtype":"BF16","shape":[2],"data_offsets":[24,28]}})";

TEST_F(SafetensorsTest, ReadsGoodFiles) {
  test::write_text(path_, file_bytes(kGood, 28));
  const SafetensorsFile file(path_);
  ASSERT_EQ(file.tensors().size(), 2u);
  EXPECT_EQ(file.tensors().at("a").shape, (Shape{2, 3}));
  EXPECT_EQ(file.tensors().at("b").dtype, DType::bf16);
  EXPECT_EQ(file.tensors().at("b").offset, 8 + std::strlen(kGood) + 24);
  EXPECT_EQ(file.stamp().size, 8 + std::strlen(kGood) + 28);
  // No tensors, scalars, empty tensors, padding behind the header, metadata.
  test::write_text(path_, file_bytes("{}", 0));
  EXPECT_TRUE(SafetensorsFile(path_).tensors().empty());
  test::write_text(
      path_, file_bytes(R"({"__metadata__":{"format":"pt"},"e":{"dtype":"F32","shape":[0,4],"data_offsets":[0,0]},)"
                        R"("s":{"dtype":"F64","shape":[],"data_offsets":[0,8]}}   )",
                        8));
  const SafetensorsFile other(path_);
  EXPECT_EQ(other.metadata().at("format"), "pt");
  EXPECT_EQ(other.tensors().at("s").bytes, 8u);
  EXPECT_EQ(other.tensors().at("e").bytes, 0u);
}

TEST_F(SafetensorsTest, RefusesDamage) {
  const std::string good = file_bytes(kGood, 28);
  expect_error("", "the file is empty");
  expect_error("abc", "truncated");
  expect_error(good.substr(0, good.size() - 1), "truncated");
  expect_error(good.substr(0, 8), "truncated");
  expect_error(good.substr(0, 50), "truncated");
  expect_error(good + "x", "1 trailing bytes");
  expect_error(good + std::string(1 << 20, '\0'), "1048576 trailing bytes");
  expect_error(std::string(64, '\xff'), "not a safetensors file");
  expect_error("version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 5\n", "is a Git LFS pointer");
  expect_error(file_bytes("[1]", 0), "does not begin with '{'");
  expect_error(file_bytes("{\"a\":", 0), "not valid JSON");
  expect_error(file_bytes("{} x", 0), "not valid JSON");
  expect_error(file_bytes("{\"\xff\":1}", 0), "not valid JSON");
  // A value cut short in a message stays UTF-8.
  EXPECT_NO_THROW(nlohmann::json(error_of(file_bytes("{\"a\":\"xx\xc3\xa4" + std::string(70, 'y') + "\"}", 0))).dump());
  const auto entry = [](const std::string& fields) { return file_bytes(fmt::format("{{\"a\":{{{}}}}}", fields), 24); };
  expect_error(
      file_bytes(
          R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},"a":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}})",
          8),
      "the key stands twice");
  expect_error(file_bytes("{\"a\":[[[[[[[[1]]]]]]]]}", 0), "nested deeper");
  expect_error(file_bytes("{\"a\":3}", 0), "tensor a");
  expect_error(file_bytes("{\"__metadata__\":{\"x\":1}}", 0), "__metadata__.x");
  expect_error(entry(R"("dtype":"F33","shape":[6],"data_offsets":[0,24])"), "F33");
  expect_error(entry(R"("dtype":7,"shape":[6],"data_offsets":[0,24])"), "dtype");
  expect_error(entry(R"("shape":[6],"data_offsets":[0,24])"), "dtype: the field is missing");
  expect_error(entry(R"("dtype":"F32","shape":[6],"data_offsets":[0,24],"more":1)"), "more: unknown field");
  expect_error(entry(R"("dtype":"F32","shape":[7],"data_offsets":[0,24])"), "expected 28 bytes");
  expect_error(entry(R"("dtype":"F32","shape":[-6],"data_offsets":[0,24])"), "expected a list of sizes");
  expect_error(entry(R"("dtype":"F32","shape":[6.0],"data_offsets":[0,24])"), "expected a list of sizes");
  expect_error(entry(R"("dtype":"F32","shape":6,"data_offsets":[0,24])"), "expected a list of sizes");
  expect_error(entry(R"("dtype":"F32","shape":[4294967296,4294967296,4],"data_offsets":[0,24])"), "product below");
  expect_error(entry(R"("dtype":"F32","shape":[1,1,1,1,1,1,6],"data_offsets":[0,24])"), "more than 6 axes");
  expect_error(entry(R"("dtype":"F32","shape":[6],"data_offsets":[24,0])"), "data_offsets");
  expect_error(entry(R"("dtype":"F32","shape":[6],"data_offsets":[-1,23])"), "expected [begin, end]");
  expect_error(entry(R"("dtype":"F32","shape":[6],"data_offsets":[0])"), "expected [begin, end]");
  expect_error(entry(R"("dtype":"F32","shape":[6],"data_offsets":[4,28])"), "truncated");
  expect_error(entry(R"("dtype":"F32","shape":[5],"data_offsets":[4,24])"), "leaves a gap");
  expect_error(entry(R"("dtype":"F32","shape":[5],"data_offsets":[0,20])"), "4 trailing bytes");
  expect_error(
      file_bytes(
          R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},"b":{"dtype":"F32","shape":[2],"data_offsets":[4,12]}})",
          12),
      "overlaps");
}

TEST_F(SafetensorsTest, RefusesOtherThings) {
  std::filesystem::create_directory(folder_ / "d.safetensors");
  EXPECT_NE(user_error_of([&] { SafetensorsFile file(folder_ / "d.safetensors"); }).find("not a regular file"),
            std::string::npos);
  ASSERT_EQ(::mkfifo((folder_ / "f.safetensors").c_str(), 0600), 0);
  EXPECT_NE(user_error_of([&] { SafetensorsFile file(folder_ / "f.safetensors"); }).find("not a regular file"),
            std::string::npos);
  EXPECT_NE(user_error_of([&] { SafetensorsFile file(folder_ / "none.safetensors"); }).find("No such file"),
            std::string::npos);
}

TEST_F(SafetensorsTest, WritesWhatItReads) {
  std::vector<float> a = {1, 2, 3, 4, 5, 6};
  std::vector<std::uint8_t> b = {7, 8, 9};
  std::vector<std::uint16_t> c = {1, 2, 3};
  write_safetensors(path_,
                    {{"b", Tensor(b.data(), {3}, DType::u8)},
                     {"a", Tensor(a.data(), {2, 3}, DType::f32)},
                     {"c", Tensor(c.data(), {3}, DType::f16)},
                     {"none", Tensor(b.data(), {0, 2}, DType::u8)}},
                    {{"made by", "a \"test\""}});
  const SafetensorsFile file(path_);
  EXPECT_EQ(file.metadata().at("made by"), "a \"test\"");
  ASSERT_EQ(file.tensors().size(), 4u);
  EXPECT_EQ(std::memcmp(file.read(file.tensors().at("a")).data(), a.data(), 24), 0);
  EXPECT_EQ(std::memcmp(file.read(file.tensors().at("b")).data(), b.data(), 3), 0);
  std::uint16_t last = 0;
  file.read(file.tensors().at("c"), 4, 2, &last);
  EXPECT_EQ(last, 3);
  // Wide elements first, each at a multiple of its size.
  for (const auto& [name, t] : file.tensors()) EXPECT_EQ(t.offset % size_of(t.dtype), 0u) << name;
}

TEST_F(SafetensorsTest, AnUnfinishedFileLeavesNothing) {
  {
    SafetensorsWriter writer(path_, {{"a", DType::f32, {2}}});
    const float value = 1;
    writer.append(&value, 4);
    EXPECT_THROW(writer.append(path_.c_str(), 8), RunError);  // more than announced
    EXPECT_THROW(writer.commit(), RunError);                  // less than announced
  }
  EXPECT_TRUE(std::filesystem::is_empty(folder_.path()));
  EXPECT_THROW(write_safetensors("/nowhere/x.safetensors", {}), SceneError);
}

TEST_F(SafetensorsTest, FileThatShrinksWhileOpen) {
  test::write_text(path_, file_bytes(kGood, 28));
  const SafetensorsFile file(path_);
  std::filesystem::resize_file(path_, 20);
  EXPECT_THROW(file.read(file.tensors().at("a")), RunError);
}

// Every file of the nano model and every golden is read as it is.
TEST_F(SafetensorsTest, ReadsRealFiles) {
  std::size_t files = 0;
  for (const std::string& root : {test::nano_path(), test::source_path("tests/goldens")})
    for (const auto& entry : std::filesystem::recursive_directory_iterator(root))
      if (entry.path().extension() == ".safetensors") {
        EXPECT_FALSE(SafetensorsFile(entry.path()).tensors().empty()) << entry.path();
        ++files;
      }
  EXPECT_GE(files, 15u);
}

// Damaged files are read or refused with a UserError; nothing else happens, and what is read lies within the file.
TEST_F(SafetensorsTest, SurvivesMutations) {
  const std::string good = file_bytes(kGood, 28);
  std::mt19937 random(7);
  const auto below = [&](std::size_t n) { return std::uniform_int_distribution<std::size_t>(0, n - 1)(random); };
  std::size_t refused = 0;
  const char* factor = std::getenv("H3RENDER_LONG_TESTS");
  const int rounds = 3000 * (factor == nullptr ? 1 : std::atoi(factor));
  for (int round = 0; round < rounds; ++round) {
    std::string bytes = good;
    for (std::size_t change = 0; change <= below(3); ++change) {
      const std::size_t at = below(2) ? below(bytes.size()) : below(16);
      switch (below(5)) {
        case 0:
          bytes[at] = static_cast<char>(below(256));
          break;
        case 1:
          bytes[at] = static_cast<char>(bytes[at] ^ (1 << below(8)));
          break;
        case 2:
          bytes.resize(1 + below(bytes.size()));
          break;
        case 3:
          bytes.insert(at, 1, "0129{}[],:\"-e"[below(13)]);
          break;
        default:
          bytes.erase(at, 1 + below(8));
          break;
      }
      if (bytes.empty()) bytes.push_back('x');
      if (bytes.size() < 17) break;
    }
    // A new file each time: some file systems write through when one is replaced.
    std::filesystem::remove(path_);
    test::write_text(path_, bytes);
    try {
      const SafetensorsFile file(path_);
      for (const auto& [name, t] : file.tensors()) {
        EXPECT_LE(t.offset + t.bytes, bytes.size());
        file.read(t);
      }
    } catch (const UserError& e) {
      EXPECT_NO_THROW(nlohmann::json(e.what()).dump()) << "a message that is not UTF-8";
      ++refused;
    }
  }
  EXPECT_GT(refused, static_cast<std::size_t>(rounds / 2));
}

}  // namespace
}  // namespace h3
