#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/file.h"
#include "weights/safetensors.h"

namespace h3 {

static std::string header_text(const std::vector<TensorHeader>& tensors,
                               const std::map<std::string, std::string>& metadata, std::uint64_t* data_bytes) {
  nlohmann::ordered_json header = nlohmann::ordered_json::object();
  if (!metadata.empty()) header["__metadata__"] = metadata;
  *data_bytes = 0;
  for (const TensorHeader& t : tensors) {
    const std::uint64_t begin = *data_bytes;
    *data_bytes += static_cast<std::uint64_t>(t.shape.elements()) * size_of(t.dtype);
    std::vector<std::int64_t> sizes;
    for (int i = 0; i < t.shape.rank(); ++i) sizes.push_back(t.shape[i]);
    header[t.name] = {{"dtype", safetensors_name(t.dtype)}, {"shape", sizes}, {"data_offsets", {begin, *data_bytes}}};
  }
  std::string text = header.dump();
  // Spaces bring the data to a multiple of eight bytes, so that it may be mapped.
  text.append((8 - text.size() % 8) % 8, ' ');
  return text;
}

void sort_for_alignment(std::vector<TensorHeader>& tensors) {
  std::stable_sort(tensors.begin(), tensors.end(),
                   [](const TensorHeader& a, const TensorHeader& b) { return size_of(a.dtype) > size_of(b.dtype); });
}

SafetensorsWriter::SafetensorsWriter(std::filesystem::path path, const std::vector<TensorHeader>& tensors,
                                     const std::map<std::string, std::string>& metadata)
    : path_(std::move(path)), temporary_(temporary_path_for(path_)) {
  const std::string header = header_text(tensors, metadata, &missing_);
  const std::uint64_t length = header.size(), data_bytes = missing_;
  fd_ = ::open(temporary_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  if (fd_ < 0) throw SceneError(fmt::format("{}: cannot be written: {}", path_.string(), std::strerror(errno)));
  missing_ += 8 + length;
  try {
    append(&length, 8);
    append(header.data(), length);
  } catch (...) {
    ::close(fd_);
    ::unlink(temporary_.c_str());
    throw;
  }
  CHECK_EQ(missing_, data_bytes);
}

SafetensorsWriter::~SafetensorsWriter() {
  if (fd_ < 0) return;
  ::close(fd_);
  ::unlink(temporary_.c_str());
}

void SafetensorsWriter::append(const void* data, std::size_t bytes) {
  CHECK_LE(bytes, missing_);
  missing_ -= bytes;
  const auto* from = static_cast<const char*>(data);
  while (bytes > 0) {
    const ssize_t n = ::write(fd_, from, std::min<std::size_t>(bytes, 1u << 30));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) throw SceneError(fmt::format("{}: cannot be written: {}", path_.string(), std::strerror(errno)));
    from += n;
    bytes -= static_cast<std::size_t>(n);
  }
}

void SafetensorsWriter::commit() {
  CHECK_EQ(missing_, 0u);
  commit_file(temporary_, path_);
  ::close(fd_);
  fd_ = -1;
}

void write_safetensors(const std::filesystem::path& path, const std::map<std::string, Tensor>& tensors,
                       const std::map<std::string, std::string>& metadata) {
  std::vector<TensorHeader> headers;
  for (const auto& [name, t] : tensors) {
    H3_CHECK(t.contiguous() && t.place == Place::host, "write_safetensors takes contiguous host tensors");
    headers.push_back({name, t.dtype, t.shape});
  }
  sort_for_alignment(headers);
  SafetensorsWriter writer(path, headers, metadata);
  for (const TensorHeader& h : headers) writer.append(tensors.at(h.name).data, tensors.at(h.name).bytes());
  writer.commit();
}

}  // namespace h3
