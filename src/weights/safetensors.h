// safetensors files: a strict reader of one file's header (names, dtypes, shapes, places of the data) that reads values
// on demand. A file that is cut short, padded, overlapping or inconsistent in any way is refused by name.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "compute/tensor.h"

namespace h3 {

struct TensorEntry {
  DType dtype = DType::f32;
  Shape shape;
  std::uint64_t offset = 0;  // of the first byte, from the start of the file
  std::uint64_t bytes = 0;
};

// What tells one version of a file from another without reading it.
struct FileStamp {
  std::uint64_t device = 0, inode = 0, size = 0;
  std::int64_t mtime_ns = 0;
  bool operator==(const FileStamp&) const = default;
};

class SafetensorsFile {
 public:
  // Opens the file and checks its header against the file's size: the header ends within the file, is JSON without
  // duplicate keys, every tensor's bytes equal its shape, and the tensors cover the data exactly, without gaps or
  // overlaps. UserError names file, tensor, what was found and what was expected.
  explicit SafetensorsFile(const std::filesystem::path& path);
  ~SafetensorsFile();
  SafetensorsFile(SafetensorsFile&& other) noexcept;
  SafetensorsFile& operator=(SafetensorsFile&&) = delete;

  const std::filesystem::path& path() const { return path_; }
  const std::map<std::string, TensorEntry, std::less<>>& tensors() const { return tensors_; }
  const std::map<std::string, std::string>& metadata() const { return metadata_; }
  const FileStamp& stamp() const { return stamp_; }
  // Reads `bytes` bytes of the tensor from byte `begin` on. Thread-safe. RunError when the system refuses.
  void read(const TensorEntry& tensor, std::uint64_t begin, std::uint64_t bytes, void* to) const;
  // The whole tensor.
  std::vector<std::byte> read(const TensorEntry& tensor) const;

 private:
  std::string read_header();
  void parse(const std::string& header);
  void check_cover(std::uint64_t data_begin) const;

  std::filesystem::path path_;
  int fd_ = -1;
  FileStamp stamp_;
  std::map<std::string, TensorEntry, std::less<>> tensors_;
  std::map<std::string, std::string> metadata_;
};

// What a tensor of a file to be written is called and looks like.
struct TensorHeader {
  std::string name;
  DType dtype = DType::f32;
  Shape shape;
};

// Brings tensors of wide elements first, so that each begins at a multiple of its element size.
void sort_for_alignment(std::vector<TensorHeader>& tensors);

// Writes a file tensor by tensor in the order announced, under a temporary name; `commit` gives it its final name.
// Throws SceneError naming the file and the system's reason (disk full), and leaves nothing behind when not committed.
class SafetensorsWriter {
 public:
  SafetensorsWriter(std::filesystem::path path, const std::vector<TensorHeader>& tensors,
                    const std::map<std::string, std::string>& metadata = {});
  ~SafetensorsWriter();
  SafetensorsWriter(const SafetensorsWriter&) = delete;
  SafetensorsWriter& operator=(const SafetensorsWriter&) = delete;
  // The next bytes of the data; tensors may be given in pieces.
  void append(const void* data, std::size_t bytes);
  void commit();

 private:
  std::filesystem::path path_, temporary_;
  int fd_ = -1;
  std::uint64_t missing_ = 0;
};

// Writes whole host tensors (contiguous), wide elements first, then by name.
void write_safetensors(const std::filesystem::path& path, const std::map<std::string, Tensor>& tensors,
                       const std::map<std::string, std::string>& metadata = {});

}  // namespace h3
