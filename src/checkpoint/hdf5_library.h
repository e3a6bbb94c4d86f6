// The HDF5 C library as this room uses it: one caller at a time (not every build of it is thread-safe), no printing of
// its own, handles that close themselves, and every failure an exception that names the call and HDF5's reason.
#pragma once

#include <hdf5.h>

#include <mutex>
#include <stdexcept>
#include <string>
#include <string_view>

#include "base/dtype.h"

namespace h3 {

// A file that cannot be read as what it should be, as after a truncation or a flipped bit; also any failed HDF5 call.
class Hdf5Failure : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// How files are locked while they are read. Ours are written under a name nobody else knows and are never changed
// afterwards, so no lock is needed; `automatic` takes one where the file system has locks.
enum class FileLocking : std::uint8_t { automatic, on, off };
// "auto", "on" or "off". Throws UserError naming `option` otherwise.
FileLocking parse_file_locking(const std::string& text, const std::string& option);

// Holds the library for one thread; nests.
class Hdf5Guard {
 public:
  Hdf5Guard();

 private:
  std::unique_lock<std::recursive_mutex> lock_;
};

// "1.10.8", of the library in use.
std::string hdf5_version();

// Throws Hdf5Failure("CALL failed: REASON") for a negative status, else returns it.
template <typename T>
T hdf5_checked(T status, std::string_view call);
[[noreturn]] void hdf5_failed(std::string_view call);
template <typename T>
T hdf5_checked(T status, std::string_view call) {
  if (status < 0) hdf5_failed(call);
  return status;
}

// Closes an HDF5 object when it goes out of scope.
class Hdf5Handle {
 public:
  using Close = herr_t (*)(hid_t);
  Hdf5Handle(hid_t id, Close close, std::string_view call) : id_(hdf5_checked(id, call)), close_(close) {}
  ~Hdf5Handle() { reset(); }
  Hdf5Handle(Hdf5Handle&& other) noexcept : id_(other.id_), close_(other.close_) { other.id_ = H5I_INVALID_HID; }
  Hdf5Handle(const Hdf5Handle&) = delete;
  Hdf5Handle& operator=(const Hdf5Handle&) = delete;
  Hdf5Handle& operator=(Hdf5Handle&&) = delete;
  hid_t id() const { return id_; }
  void reset() {
    if (id_ >= 0) close_(id_);
    id_ = H5I_INVALID_HID;
  }

 private:
  hid_t id_;
  Close close_;
};

// A property list of class `kind`.
Hdf5Handle hdf5_properties(hid_t kind);
// Sets how a file opened with the access properties `access` is locked.
void set_file_locking(hid_t access, FileLocking locking);

// How a dtype is stored: f32 and f64 as IEEE little-endian, integers as they are, the short formats that HDF5 does not
// know (bf16, f16, f8e4m3) as unsigned integers that hold their bits.
hid_t hdf5_stored_type(DType dtype);
// A string type of exactly `bytes` bytes of UTF-8.
Hdf5Handle hdf5_text_type(std::size_t bytes);

}  // namespace h3
