#include "checkpoint/hdf5_library.h"

#include <stdlib.h>

#include "base/error.h"

namespace h3 {

// HDF5 gained H5Pset_file_locking in 1.10.7 and, on the newer line, in 1.12.1.
#define H3_HAS_FILE_LOCKING (H5_VERSION_GE(1, 12, 1) || (H5_VERSION_GE(1, 10, 7) && !H5_VERSION_GE(1, 11, 0)))

FileLocking parse_file_locking(const std::string& text, const std::string& option) {
  if (text == "auto") return FileLocking::automatic;
  if (text == "on") return FileLocking::on;
  if (text == "off") return FileLocking::off;
  throw UserError(option, "", text, "one of auto, on, off");
}

std::string hdf5_version() {
  unsigned major = 0, minor = 0, release = 0;
  const Hdf5Guard guard;
  hdf5_checked(H5get_libversion(&major, &minor, &release), "H5get_libversion");
  return fmt::format("{}.{}.{}", major, minor, release);
}

Hdf5Guard::Hdf5Guard() {
  static std::recursive_mutex mutex;
  lock_ = std::unique_lock(mutex);
  H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr);  // the setting is each thread's own in thread-safe builds
}

// The innermost entry of the error stack is the one that knows the cause.
static std::string hdf5_reason() {
  std::string reason;
  H5Ewalk2(
      H5E_DEFAULT, H5E_WALK_UPWARD,
      [](unsigned, const H5E_error2_t* entry, void* out) -> herr_t {
        *static_cast<std::string*>(out) = entry->desc ? entry->desc : "";
        return 1;
      },
      &reason);
  return reason.empty() ? "no reason given" : reason;
}

void hdf5_failed(std::string_view call) {
  throw Hdf5Failure(fmt::format("{} failed: {}", call, hdf5_reason()));
}

Hdf5Handle hdf5_properties(hid_t kind) {
  return Hdf5Handle(H5Pcreate(kind), H5Pclose, "H5Pcreate");
}

void set_file_locking(hid_t access, FileLocking locking) {
#if H3_HAS_FILE_LOCKING
  const hbool_t use = locking != FileLocking::off, ignore_where_disabled = locking != FileLocking::on;
  hdf5_checked(H5Pset_file_locking(access, use, ignore_where_disabled), "H5Pset_file_locking");
#else
  // Older libraries know this variable alone, and look at it when they open their first file.
  (void)access;
  ::setenv("HDF5_USE_FILE_LOCKING", locking == FileLocking::on ? "TRUE" : "FALSE", 1);
#endif
}

hid_t hdf5_stored_type(DType dtype) {
  switch (dtype) {
    case DType::f32:
      return H5T_IEEE_F32LE;
    case DType::f64:
      return H5T_IEEE_F64LE;
    case DType::bf16:
    case DType::f16:
      return H5T_STD_U16LE;
    case DType::f8e4m3:
    case DType::u8:
      return H5T_STD_U8LE;
    case DType::i8:
      return H5T_STD_I8LE;
    case DType::i32:
      return H5T_STD_I32LE;
    case DType::i64:
      return H5T_STD_I64LE;
  }
  H3_CHECK(false, "a dtype without a stored type");
  return H5I_INVALID_HID;
}

Hdf5Handle hdf5_text_type(std::size_t bytes) {
  Hdf5Handle type(H5Tcopy(H5T_C_S1), H5Tclose, "H5Tcopy");
  hdf5_checked(H5Tset_size(type.id(), bytes), "H5Tset_size");
  hdf5_checked(H5Tset_strpad(type.id(), H5T_STR_NULLPAD), "H5Tset_strpad");
  hdf5_checked(H5Tset_cset(type.id(), H5T_CSET_UTF8), "H5Tset_cset");
  return type;
}

}  // namespace h3
