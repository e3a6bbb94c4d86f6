#include "checkpoint/hdf5_composer.h"

#include <cstdlib>
#include <cstring>
#include <vector>

#include "base/error.h"
#include "base/hash.h"

namespace h3 {

namespace {

// Calls of HDF5's memory driver. All memory is malloc's; the buffer of a file that is being closed is handed over
// rather than freed: only then the file is complete (H5Fget_file_image leaves a wrong checksum in this format).
void* allocate(std::size_t bytes, H5FD_file_image_op_t, void*) {
  return std::malloc(bytes);
}
void* copy(void* to, const void* from, std::size_t bytes, H5FD_file_image_op_t, void*) {
  return std::memcpy(to, from, bytes);
}
void* reallocate(void* buffer, std::size_t bytes, H5FD_file_image_op_t, void*) {
  return std::realloc(buffer, bytes);
}
herr_t release(void* buffer, H5FD_file_image_op_t operation, void* closed) {
  if (operation == H5FD_FILE_IMAGE_OP_FILE_CLOSE) {
    *static_cast<void**>(closed) = buffer;
  } else {
    std::free(buffer);
  }
  return 0;
}
void* same_user_data(void* data) {
  return data;
}
herr_t keep_user_data(void*) {
  return 0;
}

// `closed` receives the buffer when the file is closed.
Hdf5Handle make_memory_file(void** closed) {
  constexpr std::size_t kGrowth = std::size_t{1} << 20;
  const Hdf5Handle access = hdf5_properties(H5P_FILE_ACCESS);
  hdf5_checked(H5Pset_fapl_core(access.id(), kGrowth, false), "H5Pset_fapl_core");
  H5FD_file_image_callbacks_t calls{allocate, copy, reallocate, release, same_user_data, keep_user_data, closed};
  hdf5_checked(H5Pset_file_image_callbacks(access.id(), &calls), "H5Pset_file_image_callbacks");
  // This format has a checksum on every piece of metadata, so that HDF5 itself notices a flipped bit.
  hdf5_checked(H5Pset_libver_bounds(access.id(), H5F_LIBVER_V18, H5F_LIBVER_V18), "H5Pset_libver_bounds");
  const Hdf5Handle creation = hdf5_properties(H5P_FILE_CREATE);
  hdf5_checked(H5Pset_obj_track_times(creation.id(), false), "H5Pset_obj_track_times");
  return Hdf5Handle(H5Fcreate("in memory", H5F_ACC_TRUNC, creation.id(), access.id()), H5Fclose, "H5Fcreate");
}

void put_attribute(hid_t object, const char* name, hid_t type, const void* value) {
  const Hdf5Handle space(H5Screate(H5S_SCALAR), H5Sclose, "H5Screate");
  const Hdf5Handle attribute(H5Acreate2(object, name, type, space.id(), H5P_DEFAULT, H5P_DEFAULT), H5Aclose,
                             "H5Acreate2");
  hdf5_checked(H5Awrite(attribute.id(), type, value), "H5Awrite");
}

void put_text_attribute(hid_t object, const char* name, std::string_view text) {
  H3_CHECK(!text.empty(), name);
  put_attribute(object, name, hdf5_text_type(text.size()).id(), text.data());
}

Hdf5Handle make_dataset(hid_t file, std::string_view name, hid_t type, hid_t space) {
  const Hdf5Handle creation = hdf5_properties(H5P_DATASET_CREATE);
  hdf5_checked(H5Pset_obj_track_times(creation.id(), false), "H5Pset_obj_track_times");
  hdf5_checked(H5Pset_fill_time(creation.id(), H5D_FILL_TIME_NEVER), "H5Pset_fill_time");
  return Hdf5Handle(H5Dcreate2(file, std::string(name).c_str(), type, space, H5P_DEFAULT, creation.id(), H5P_DEFAULT),
                    H5Dclose, "H5Dcreate2");
}

}  // namespace

Hdf5Composer::Hdf5Composer(std::string_view kind, std::int64_t schema) : file_(make_memory_file(&closed_)) {
  attribute("format", kind);
  attribute("schema", schema);
  attribute("program_version", H3RENDER_VERSION);
}

void Hdf5Composer::attribute(const std::string& name, std::string_view text) {
  put_text_attribute(file_.id(), name.c_str(), text);
}

void Hdf5Composer::attribute(const std::string& name, std::int64_t value) {
  put_attribute(file_.id(), name.c_str(), H5T_STD_I64LE, &value);
}

void Hdf5Composer::describe(hid_t dataset, const DatasetNote& note, std::string_view dtype, const void* data,
                            std::size_t bytes) {
  put_text_attribute(dataset, "axes", note.axes);
  put_text_attribute(dataset, "units", note.units);
  put_text_attribute(dataset, "meaning", note.meaning);
  put_text_attribute(dataset, "dtype", dtype);
  put_text_attribute(dataset, "xxh3_128", hash_hex(data, bytes));
}

void Hdf5Composer::dataset(const DatasetNote& note, DType dtype, std::span<const std::int64_t> shape,
                           const void* data) {
  const std::vector<hsize_t> dims(shape.begin(), shape.end());
  std::size_t bytes = size_of(dtype);
  for (const std::int64_t n : shape) bytes *= static_cast<std::size_t>(n);
  const hid_t type = hdf5_stored_type(dtype);
  const Hdf5Handle space(H5Screate_simple(static_cast<int>(dims.size()), dims.data(), nullptr), H5Sclose,
                         "H5Screate_simple");
  const Hdf5Handle dataset = make_dataset(file_.id(), note.name, type, space.id());
  if (bytes > 0) hdf5_checked(H5Dwrite(dataset.id(), type, H5S_ALL, H5S_ALL, H5P_DEFAULT, data), "H5Dwrite");
  describe(dataset.id(), note, name_of(dtype), data, bytes);
}

void Hdf5Composer::text(const DatasetNote& note, std::string_view text) {
  H3_CHECK(!text.empty(), note.name);
  const Hdf5Handle type = hdf5_text_type(text.size());
  const Hdf5Handle space(H5Screate(H5S_SCALAR), H5Sclose, "H5Screate");
  const Hdf5Handle dataset = make_dataset(file_.id(), note.name, type.id(), space.id());
  hdf5_checked(H5Dwrite(dataset.id(), type.id(), H5S_ALL, H5S_ALL, H5P_DEFAULT, text.data()), "H5Dwrite");
  describe(dataset.id(), note, "utf-8", text.data(), text.size());
}

Hdf5Composer::~Hdf5Composer() {
  file_.reset();
  std::free(closed_);
}

std::string Hdf5Composer::finish() {
  hdf5_checked(H5Fflush(file_.id(), H5F_SCOPE_GLOBAL), "H5Fflush");
  const auto bytes = hdf5_checked(H5Fget_file_image(file_.id(), nullptr, 0), "H5Fget_file_image");
  file_.reset();
  H3_CHECK(closed_ != nullptr, "HDF5 did not hand over the file");
  return std::string(static_cast<const char*>(closed_), static_cast<std::size_t>(bytes));
}

}  // namespace h3
