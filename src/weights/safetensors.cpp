#include "weights/safetensors.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "weights/config_object.h"

namespace h3 {

using nlohmann::json;

// The format's own limit of a header, which keeps a damaged length from asking for all memory.
constexpr std::uint64_t kLargestHeader = 100'000'000;
static_assert(std::endian::native == std::endian::little, "safetensors data is little-endian");

static void read_fully(int fd, const std::filesystem::path& path, std::uint64_t offset, std::uint64_t bytes, void* to) {
  auto* out = static_cast<char*>(to);
  while (bytes > 0) {
    const ssize_t n = ::pread(fd, out, std::min<std::uint64_t>(bytes, 1u << 30), static_cast<off_t>(offset));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) throw RunError(fmt::format("{}: cannot be read: {}", path.string(), std::strerror(errno)));
    if (n == 0) throw RunError(fmt::format("{}: became shorter while it was read", path.string()));
    out += n;
    offset += static_cast<std::uint64_t>(n);
    bytes -= static_cast<std::uint64_t>(n);
  }
}

SafetensorsFile::SafetensorsFile(const std::filesystem::path& path) : path_(path) {
  // O_NONBLOCK: opening a pipe must not wait for a writer.
  fd_ = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd_ < 0) throw UserError(path.string(), "", "", fmt::format("cannot be opened: {}", std::strerror(errno)));
  try {
    struct stat s {};
    if (::fstat(fd_, &s) != 0)
      throw UserError(path.string(), "", "", fmt::format("cannot be opened: {}", std::strerror(errno)));
    if (!S_ISREG(s.st_mode)) throw UserError(path.string(), "", "", "not a regular file, expected a safetensors file");
    stamp_ = {static_cast<std::uint64_t>(s.st_dev), static_cast<std::uint64_t>(s.st_ino),
              static_cast<std::uint64_t>(s.st_size), s.st_mtim.tv_sec * 1'000'000'000 + s.st_mtim.tv_nsec};
    parse(read_header());
  } catch (...) {
    ::close(fd_);
    throw;
  }
}

SafetensorsFile::~SafetensorsFile() {
  if (fd_ >= 0) ::close(fd_);
}

SafetensorsFile::SafetensorsFile(SafetensorsFile&& other) noexcept
    : path_(std::move(other.path_)),
      fd_(std::exchange(other.fd_, -1)),
      stamp_(other.stamp_),
      tensors_(std::move(other.tensors_)),
      metadata_(std::move(other.metadata_)) {}

std::string SafetensorsFile::read_header() {
  const std::string where = path_.string();
  if (stamp_.size == 0) throw UserError(where, "size", "0 bytes", "the file is empty");
  if (stamp_.size < 8)
    throw UserError(where, "size", fmt::format("{} bytes", stamp_.size),
                    "too short for a safetensors header, truncated");
  std::uint64_t length = 0;
  read_fully(fd_, path_, 0, 8, &length);
  if (std::memcmp(&length, "version ", 8) == 0)
    throw UserError(where, "", "", "is a Git LFS pointer; the file itself was not downloaded");
  if (length > kLargestHeader)
    throw UserError(where, "header length", fmt::format("{} bytes", length),
                    fmt::format("expected at most {}; not a safetensors file, or damaged", kLargestHeader));
  if (length > stamp_.size - 8)
    throw UserError(where, "header length", fmt::format("{} bytes", length),
                    fmt::format("the file has only {} bytes, truncated", stamp_.size));
  std::string header(length, '\0');
  read_fully(fd_, path_, 8, length, header.data());
  if (header.empty() || header[0] != '{')
    throw UserError(where, "header", "", "does not begin with '{'; not a safetensors file, or damaged");
  return header;
}

static std::uint64_t unsigned_at(const json& value) {
  return value.is_number_unsigned() ? value.get<std::uint64_t>() : UINT64_MAX;
}

static Shape parse_shape(const json& sizes, std::uint64_t* elements) {
  if (!sizes.is_array()) throw UserError("", "shape", shown(sizes), "expected a list of sizes");
  if (sizes.size() > Shape::kMaxRank)
    throw UserError("", "shape", shown(sizes), fmt::format("has more than {} axes", Shape::kMaxRank));
  std::vector<std::int64_t> shape;
  *elements = 1;
  for (const json& s : sizes) {
    const std::uint64_t n = unsigned_at(s);
    if (n > (std::uint64_t{1} << 48) || __builtin_mul_overflow(*elements, n, elements) ||
        *elements > (std::uint64_t{1} << 48))
      throw UserError("", "shape", shown(sizes), "expected a list of sizes with a product below 2^48");
    shape.push_back(static_cast<std::int64_t>(n));
  }
  return Shape(shape);
}

static TensorEntry parse_entry(const json& entry, std::uint64_t data_begin, std::uint64_t data_bytes) {
  if (!entry.is_object()) throw UserError("", "", shown(entry), "expected an object");
  for (const auto& [key, value] : entry.items())
    if (key != "dtype" && key != "shape" && key != "data_offsets") throw UserError("", key, "", "unknown field");
  for (const char* key : {"dtype", "shape", "data_offsets"})
    if (!entry.contains(key)) throw UserError("", key, "", "the field is missing");
  if (!entry["dtype"].is_string()) throw UserError("", "dtype", shown(entry["dtype"]), "expected text");
  TensorEntry t;
  t.dtype = dtype_from_safetensors(entry["dtype"].get<std::string>());
  std::uint64_t elements = 0;
  t.shape = parse_shape(entry["shape"], &elements);
  t.bytes = elements * size_of(t.dtype);
  const json& offsets = entry["data_offsets"];
  if (!offsets.is_array() || offsets.size() != 2 || !offsets[0].is_number_unsigned() ||
      !offsets[1].is_number_unsigned())
    throw UserError("", "data_offsets", shown(offsets), "expected [begin, end]");
  const std::uint64_t begin = unsigned_at(offsets[0]), end = unsigned_at(offsets[1]);
  if (begin > end || end - begin != t.bytes)
    throw UserError("", "data_offsets", shown(offsets),
                    fmt::format("expected {} bytes for {} {}", t.bytes, safetensors_name(t.dtype), t.shape.text()));
  if (end > data_bytes)
    throw UserError("", "data_offsets", shown(offsets),
                    fmt::format("the file holds only {} bytes of data, truncated", data_bytes));
  t.offset = data_begin + begin;
  return t;
}

void SafetensorsFile::parse(const std::string& header) {
  const std::string where = path_.string();
  const json index = parse_json_strictly(header, where + ": header", 4);
  const std::uint64_t data_begin = 8 + header.size();
  for (const auto& [name, entry] : index.items()) {
    if (name == "__metadata__") {
      if (!entry.is_object()) throw UserError(where, "__metadata__", "", "expected an object of texts");
      for (const auto& [key, value] : entry.items()) {
        if (!value.is_string()) throw UserError(where, "__metadata__." + key, shown(value), "expected text");
        metadata_[key] = value.get<std::string>();
      }
      continue;
    }
    try {
      tensors_[name] = parse_entry(entry, data_begin, stamp_.size - data_begin);
    } catch (const UserError& e) {
      throw UserError(where + ": tensor " + name, "", "", e.what());
    }
  }
  check_cover(data_begin);
}

void SafetensorsFile::check_cover(std::uint64_t data_begin) const {
  std::vector<std::pair<const TensorEntry*, std::string_view>> order;
  for (const auto& [name, t] : tensors_) order.emplace_back(&t, name);
  std::sort(order.begin(), order.end(), [](const auto& a, const auto& b) {
    return std::pair(a.first->offset, a.first->bytes) < std::pair(b.first->offset, b.first->bytes);
  });
  std::uint64_t end = data_begin;
  for (const auto& [t, name] : order) {
    if (t->offset != end)
      throw UserError(path_.string(), "tensor " + std::string(name),
                      fmt::format("begins at byte {}", t->offset - data_begin),
                      fmt::format("{} at byte {}",
                                  t->offset < end ? "overlaps the tensor before it, which ends"
                                                  : "leaves a gap behind the tensor before it, which ends",
                                  end - data_begin));
    end = t->offset + t->bytes;
  }
  if (end != stamp_.size)
    throw UserError(path_.string(), "size", fmt::format("{} bytes", stamp_.size),
                    fmt::format("expected {}: {} trailing bytes", end, stamp_.size - end));
}

void SafetensorsFile::read(const TensorEntry& tensor, std::uint64_t begin, std::uint64_t bytes, void* to) const {
  CHECK_LE(begin + bytes, tensor.bytes);
  read_fully(fd_, path_, tensor.offset + begin, bytes, to);
}

std::vector<std::byte> SafetensorsFile::read(const TensorEntry& tensor) const {
  std::vector<std::byte> data(tensor.bytes);
  read(tensor, 0, tensor.bytes, data.data());
  return data;
}

}  // namespace h3
