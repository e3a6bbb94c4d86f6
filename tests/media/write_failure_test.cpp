// Files that cannot be written: one SceneError naming the file, and nothing left behind.
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>

#include "media/helpers.h"
#include "media/mp4.h"
#include "media/png.h"
#include "media/wav.h"

namespace h3::test {

static Image noise(int width, int height, unsigned seed) {
  Image image(width, height);
  for (auto& level : image.rgb) level = static_cast<std::uint8_t>((seed = seed * 1664525u + 1013904223u) >> 24);
  return image;
}

// A clip of some megabytes: noise does not compress.
static void write_large_clip(const std::filesystem::path& path) {
  Mp4Options options;
  options.width = options.height = 256;
  options.preset = "ultrafast";
  Mp4Writer writer(path, options);
  for (unsigned i = 0; i < 22; ++i) writer.add_frame(noise(256, 256, i).rgb);
  writer.add_sound(tones(29600, 440, 440));
  writer.finish();
}

static void expect_failures_in(const TemporaryFolder& folder, const std::filesystem::path& root,
                               const std::string& reason) {
  const auto check = [&](const std::string& name, auto&& write) {
    const std::string message = message_of<SceneError>([&] { write(root / name); });
    expect_has(message, name);
    expect_has(message, reason);
    EXPECT_EQ(entries_of(folder), 0u) << name << " left something behind";
  };
  check("x.mp4", write_large_clip);
  check("x.png", [](const auto& path) { write_png(path, noise(512, 512, 1)); });
  check("x.wav", [](const auto& path) { write_wav(path, tones(200000, 440, 440)); });
}

// Lowers the largest file that this process may write, and puts it back.
class FileSizeLimit {
 public:
  explicit FileSizeLimit(rlim_t bytes) {
    ::signal(SIGXFSZ, SIG_IGN);
    ::getrlimit(RLIMIT_FSIZE, &old_);
    const rlimit lowered{bytes, old_.rlim_max};
    ::setrlimit(RLIMIT_FSIZE, &lowered);
  }
  ~FileSizeLimit() { ::setrlimit(RLIMIT_FSIZE, &old_); }
  FileSizeLimit(const FileSizeLimit&) = delete;
  FileSizeLimit& operator=(const FileSizeLimit&) = delete;

 private:
  rlimit old_{};
};

TEST(WriteFailure, FileTooLarge) {
  const TemporaryFolder folder;
  for (const rlim_t bytes : {rlim_t{0}, rlim_t{1000}, rlim_t{100000}}) {
    const FileSizeLimit limit(bytes);
    expect_failures_in(folder, folder.path(), "File too large");
  }
}

// The index is moved to the front at the end, which needs room for it once more: every limit up to the file's own
// size must fail, and none may leave a file that looks whole.
TEST(WriteFailure, TooLargeByALittle) {
  const TemporaryFolder folder;
  write_large_clip(folder.path() / "x.mp4");
  const auto size = std::filesystem::file_size(folder.path() / "x.mp4");
  std::filesystem::remove(folder.path() / "x.mp4");
  for (const std::uintmax_t missing : {1u, 100u, 1000u, 3000u}) {
    const FileSizeLimit limit(size - missing);
    expect_has(message_of<SceneError>([&] { write_large_clip(folder.path() / "x.mp4"); }), "x.mp4: cannot be written");
    EXPECT_EQ(entries_of(folder), 0u) << missing;
  }
  const FileSizeLimit limit(size);
  EXPECT_NO_THROW(write_large_clip(folder.path() / "x.mp4"));
}

TEST(WriteFailure, DiskFull) {
  const TemporaryFolder folder;
  if (::mount("tmpfs", folder.path().c_str(), "tmpfs", 0, "size=128k") != 0)
    GTEST_SKIP() << "mounting a small tmpfs is not permitted here";
  expect_failures_in(folder, folder.path(), "No space left on device");
  ::umount(folder.path().c_str());
}

TEST(WriteFailure, ReadOnlyFileSystem) {
  const TemporaryFolder folder;
  if (::mount("tmpfs", folder.path().c_str(), "tmpfs", MS_RDONLY, "size=128k") != 0)
    GTEST_SKIP() << "mounting a small tmpfs is not permitted here";
  expect_failures_in(folder, folder.path(), "Read-only file system");
  ::umount(folder.path().c_str());
}

TEST(WriteFailure, NoSuchFolder) {
  const TemporaryFolder folder;
  expect_failures_in(folder, folder.path() / "gone", "No such file or directory");
}

TEST(WriteFailure, ReadOnlyFolder) {
  if (::geteuid() == 0) GTEST_SKIP() << "root may write everywhere";
  const TemporaryFolder folder;
  ::chmod(folder.path().c_str(), 0500);
  expect_failures_in(folder, folder.path(), "Permission denied");
  ::chmod(folder.path().c_str(), 0700);
}

}  // namespace h3::test
