#include "checkpoint/hdf5_reader.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <fstream>

#include "base/error.h"
#include "base/hash.h"
#include "base/log.h"

namespace h3 {

namespace fs = std::filesystem;

namespace {

// Damage leaves zeros, nothing, or the signature with a few bits changed; anything else was never ours.
void require_hdf5(const fs::path& path, std::uint64_t bytes) {
  static constexpr std::array<char, 8> kSignature{'\x89', 'H', 'D', 'F', '\r', '\n', '\x1a', '\n'};
  std::ifstream in(path, std::ios::binary);
  if (!in) throw UserError(path.string(), "", "", fmt::format("cannot be read: {}", std::strerror(errno)));
  std::array<char, 8> head{};
  in.read(head.data(), head.size());
  const auto length = static_cast<std::size_t>(in.gcount());
  std::size_t equal = 0, zeros = 0;
  for (std::size_t i = 0; i < length; ++i) {
    equal += head[i] == kSignature[i];
    zeros += head[i] == 0;
  }
  if (equal == head.size()) return;
  if (length == 0 || zeros == length || 2 * equal >= length)
    throw Hdf5Failure(fmt::format("its first bytes are damaged ({} bytes in all)", bytes));
  throw UserError(path.string(), "", "", "is not an HDF5 file; move it away, this program did not write it");
}

Hdf5Handle open_file(const fs::path& path, FileLocking locking) {
  const Hdf5Handle access = hdf5_properties(H5P_FILE_ACCESS);
  set_file_locking(access.id(), locking);
  try {
    return Hdf5Handle(H5Fopen(path.c_str(), H5F_ACC_RDONLY, access.id()), H5Fclose, "H5Fopen");
  } catch (const Hdf5Failure& e) {
    if (std::string_view(e.what()).find("to lock") == std::string_view::npos) throw;
    if (locking == FileLocking::automatic) {
      spdlog::debug("{}: read without a lock ({})", path.string(), e.what());
      return open_file(path, FileLocking::off);
    }
    throw UserError(path.string(), "", "",
                    fmt::format("cannot be locked: {}. Another program has it open, or its file system has no locks: "
                                "set the HDF5 file locking to auto or off",
                                e.what()));
  }
}

Hdf5Handle open_attribute(hid_t object, const std::string& name) {
  return Hdf5Handle(H5Aopen(object, name.c_str(), H5P_DEFAULT), H5Aclose, "H5Aopen");
}

Hdf5Handle type_of(const Hdf5Handle& attribute) {
  return Hdf5Handle(H5Aget_type(attribute.id()), H5Tclose, "H5Aget_type");
}

// Texts of ours have a fixed length; those that h5py writes do not.
std::string read_text_attribute(hid_t object, const std::string& name) {
  const Hdf5Handle attribute = open_attribute(object, name);
  const Hdf5Handle type = type_of(attribute);
  const Hdf5Handle space(H5Aget_space(attribute.id()), H5Sclose, "H5Aget_space");
  if (H5Tget_class(type.id()) != H5T_STRING || H5Sget_simple_extent_npoints(space.id()) != 1)
    throw Hdf5Failure(fmt::format("its attribute {} is not a text", name));
  if (H5Tis_variable_str(type.id()) > 0) {
    char* text = nullptr;
    hdf5_checked(H5Aread(attribute.id(), type.id(), &text), "H5Aread");
    std::string value = text ? text : "";
    H5free_memory(text);
    return value;
  }
  std::string value(H5Tget_size(type.id()), '\0');
  hdf5_checked(H5Aread(attribute.id(), type.id(), value.data()), "H5Aread");
  value.resize(std::min(value.find('\0'), value.size()));
  return value;
}

std::int64_t read_integer_attribute(hid_t object, const std::string& name) {
  const Hdf5Handle attribute = open_attribute(object, name);
  const Hdf5Handle space(H5Aget_space(attribute.id()), H5Sclose, "H5Aget_space");
  if (H5Tget_class(type_of(attribute).id()) != H5T_INTEGER || H5Sget_simple_extent_npoints(space.id()) != 1)
    throw Hdf5Failure(fmt::format("its attribute {} is not an integer", name));
  std::int64_t value = 0;
  hdf5_checked(H5Aread(attribute.id(), H5T_NATIVE_INT64, &value), "H5Aread");
  return value;
}

std::optional<DType> dtype_named(const std::string& name) {
  for (const DType d :
       {DType::f32, DType::bf16, DType::f16, DType::f8e4m3, DType::i8, DType::u8, DType::i32, DType::i64, DType::f64})
    if (name_of(d) == name) return d;
  return std::nullopt;
}

}  // namespace

// A dataset that was opened and measured.
struct Hdf5Reader::Found {
  std::string name;
  Hdf5Handle dataset;
  DType dtype = DType::f32;
  std::vector<std::int64_t> shape;
  std::size_t count = 1, bytes = 0;
};

Hdf5Reader::Hdf5Reader(const fs::path& path, FileLocking locking) : path_(path) {
  std::error_code error;
  if (!fs::is_regular_file(path, error))
    throw UserError(path.string(), "", "", error ? "cannot be read: " + error.message() : "is not a regular file");
  file_bytes_ = fs::file_size(path, error);
  require_hdf5(path, file_bytes_);
  file_.emplace(open_file(path, locking));
}

void Hdf5Reader::require(const std::string& kind, std::int64_t newest_schema) const {
  const bool marked = hdf5_checked(H5Aexists(file_->id(), "format"), "H5Aexists") > 0;
  const std::string found = marked ? text_attribute("format") : "";
  if (found != kind)
    throw UserError(path_.string(), "format", marked ? found : "(missing)",
                    fmt::format("is not a file of the kind \"{}\"", kind));
  const std::int64_t schema = integer("schema");
  if (schema < 1 || schema > newest_schema)
    throw UserError(path_.string(), "schema", std::to_string(schema),
                    fmt::format("this program knows schemas 1 to {}; the file was written by version {}", newest_schema,
                                text_attribute("program_version")));
}

std::int64_t Hdf5Reader::integer(const std::string& name) const {
  return read_integer_attribute(file_->id(), name);
}

std::string Hdf5Reader::text_attribute(const std::string& name) const {
  return read_text_attribute(file_->id(), name);
}

bool Hdf5Reader::has(const std::string& name) const {
  return hdf5_checked(H5Lexists(file_->id(), name.c_str(), H5P_DEFAULT), "H5Lexists") > 0;
}

void Hdf5Reader::require_fits(const std::string& name, std::uint64_t bytes) const {
  if (bytes > file_bytes_)
    throw UserError(path_.string(), name, fmt::format("{} bytes", bytes),
                    fmt::format("is more than the file has ({} bytes)", file_bytes_));
}

Hdf5Reader::Found Hdf5Reader::find(const std::string& name, std::size_t rank) const {
  Found found{name, Hdf5Handle(H5Dopen2(file_->id(), name.c_str(), H5P_DEFAULT), H5Dclose, "H5Dopen2"), {}, {}};
  const std::string dtype = read_text_attribute(found.dataset.id(), "dtype");
  const std::optional<DType> known = dtype_named(dtype);
  const Hdf5Handle type(H5Dget_type(found.dataset.id()), H5Tclose, "H5Dget_type");
  if (!known || H5Tequal(type.id(), hdf5_stored_type(*known)) <= 0)
    throw Hdf5Failure(fmt::format("{} is not stored as the dtype it names, {}", name, dtype));
  found.dtype = *known;
  const Hdf5Handle space(H5Dget_space(found.dataset.id()), H5Sclose, "H5Dget_space");
  if (H5Sget_simple_extent_ndims(space.id()) != static_cast<int>(rank))
    throw Hdf5Failure(fmt::format("{} has not {} dimensions", name, rank));
  std::vector<hsize_t> dims(rank);
  hdf5_checked(H5Sget_simple_extent_dims(space.id(), dims.data(), nullptr), "H5Sget_simple_extent_dims");
  std::uint64_t bytes = size_of(found.dtype);
  for (const hsize_t n : dims) {
    if (__builtin_mul_overflow(bytes, n, &bytes)) bytes = UINT64_MAX;
    found.shape.push_back(static_cast<std::int64_t>(n));
  }
  require_fits(name, bytes);
  found.bytes = bytes;
  found.count = bytes / size_of(found.dtype);
  return found;
}

void Hdf5Reader::read(const Found& found, void* to) const {
  if (found.bytes > 0)
    hdf5_checked(H5Dread(found.dataset.id(), hdf5_stored_type(found.dtype), H5S_ALL, H5S_ALL, H5P_DEFAULT, to),
                 "H5Dread");
  require_checksum(found.dataset.id(), found.name, to, found.bytes);
}

void Hdf5Reader::require_checksum(hid_t dataset, const std::string& name, const void* data, std::size_t bytes) const {
  if (read_text_attribute(dataset, "xxh3_128") != hash_hex(data, bytes))
    throw Hdf5Failure(fmt::format("the checksum of {} does not match its content", name));
}

HostArray Hdf5Reader::array(const std::string& name, std::size_t rank) const {
  const Found found = find(name, rank);
  HostArray array{found.dtype, found.shape, std::vector<std::byte>(found.bytes)};
  read(found, array.bytes.data());
  return array;
}

Hdf5Reader::Floats Hdf5Reader::floats(const std::string& name, std::size_t rank) const {
  const Found found = find(name, rank);
  if (found.dtype != DType::f32) throw Hdf5Failure(fmt::format("{} is not f32", name));
  Floats floats{std::vector<float>(found.count), found.shape};
  read(found, floats.values.data());
  return floats;
}

std::string Hdf5Reader::text(const std::string& name) const {
  const Hdf5Handle dataset(H5Dopen2(file_->id(), name.c_str(), H5P_DEFAULT), H5Dclose, "H5Dopen2");
  const Hdf5Handle type(H5Dget_type(dataset.id()), H5Tclose, "H5Dget_type");
  const Hdf5Handle space(H5Dget_space(dataset.id()), H5Sclose, "H5Dget_space");
  if (H5Tget_class(type.id()) != H5T_STRING || H5Tis_variable_str(type.id()) != 0 ||
      H5Sget_simple_extent_npoints(space.id()) != 1)
    throw Hdf5Failure(fmt::format("{} is not a text", name));
  const std::size_t bytes = H5Tget_size(type.id());
  require_fits(name, bytes);
  std::string text(bytes, '\0');
  hdf5_checked(H5Dread(dataset.id(), type.id(), H5S_ALL, H5S_ALL, H5P_DEFAULT, text.data()), "H5Dread");
  require_checksum(dataset.id(), name, text.data(), text.size());
  return text;
}

nlohmann::ordered_json Hdf5Reader::json(const std::string& name) const {
  try {
    return nlohmann::ordered_json::parse(text(name));
  } catch (const nlohmann::json::exception& e) {
    throw Hdf5Failure(fmt::format("{} is not JSON: {}", name, e.what()));
  }
}

std::vector<std::string> Hdf5Reader::dataset_names() const {
  std::vector<std::string> names;
  hdf5_checked(H5Literate(
                   file_->id(), H5_INDEX_NAME, H5_ITER_INC, nullptr,
                   [](hid_t, const char* name, const H5L_info_t*, void* out) -> herr_t {
                     static_cast<std::vector<std::string>*>(out)->emplace_back(name);
                     return 0;
                   },
                   &names),
               "H5Literate");
  return names;
}

nlohmann::ordered_json Hdf5Reader::description() const {
  nlohmann::ordered_json all = nlohmann::ordered_json::object();
  for (const std::string& name : dataset_names()) {
    const Hdf5Handle dataset(H5Dopen2(file_->id(), name.c_str(), H5P_DEFAULT), H5Dclose, "H5Dopen2");
    const Hdf5Handle space(H5Dget_space(dataset.id()), H5Sclose, "H5Dget_space");
    std::vector<hsize_t> dims(static_cast<std::size_t>(std::max(0, H5Sget_simple_extent_ndims(space.id()))));
    hdf5_checked(H5Sget_simple_extent_dims(space.id(), dims.data(), nullptr), "H5Sget_simple_extent_dims");
    nlohmann::ordered_json& entry = all[name];
    entry["shape"] = dims;
    for (const char* attribute : {"dtype", "axes", "units", "meaning", "xxh3_128"})
      entry[attribute] = read_text_attribute(dataset.id(), attribute);
  }
  return all;
}

}  // namespace h3
