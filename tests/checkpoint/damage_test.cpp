// What storage does to files, and what other people put in their place.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <unistd.h>

#include <functional>

#include "base/error.h"
#include "checkpoint/hdf5_reader.h"
#include "checkpoint/samples.h"
#include "support/temporary_folder.h"

namespace h3::test {

namespace fs = std::filesystem;

constexpr FileLocking kAuto = FileLocking::automatic;

// How reading a file ends.
enum class Verdict { same, damaged, foreign, wrong };

template <typename T>
Verdict verdict(const T& expected, const std::function<T()>& read) {
  try {
    return read() == expected ? Verdict::same : Verdict::wrong;
  } catch (const Hdf5Failure&) {
    return Verdict::damaged;
  } catch (const UserError&) {
    return Verdict::foreign;
  }
}

class Damage : public ::testing::Test {
 protected:
  Damage() : path_(folder_.path() / "x.checkpoint.h5"), written_(sample_checkpoint(1, 7)) {
    image_ = compose_checkpoint(written_);
  }
  Verdict read(const std::string& bytes) const {
    put_bytes(path_, bytes);
    return verdict<Checkpoint>(written_, [&] { return parse_checkpoint(path_, kAuto); });
  }
  // The file opened for writing by HDF5, as another program would.
  void edit(const std::function<void(hid_t)>& change) const {
    put_bytes(path_, image_);
    const Hdf5Guard guard;
    const Hdf5Handle file(H5Fopen(path_.c_str(), H5F_ACC_RDWR, H5P_DEFAULT), H5Fclose, "H5Fopen");
    change(file.id());
  }
  std::string message() const {
    try {
      parse_checkpoint(path_, kAuto);
    } catch (const UserError& e) {
      return e.what();
    } catch (const Hdf5Failure& e) {
      return std::string("damaged: ") + e.what();
    }
    return "";
  }

  TemporaryFolder folder_;
  fs::path path_;
  Checkpoint written_;
  std::string image_;
};

TEST_F(Damage, truncation_at_any_length_is_damage) {
  for (std::size_t length = 0; length < image_.size(); length += 37)
    ASSERT_EQ(read(image_.substr(0, length)), Verdict::damaged) << length;
  EXPECT_EQ(read(image_.substr(0, image_.size() - 1)), Verdict::damaged);
}

TEST_F(Damage, a_flipped_bit_anywhere_never_gives_wrong_values) {
  std::size_t noticed = 0, harmless = 0;
  for (std::size_t at = 0; at < image_.size(); at += at < 4096 ? 1 : 13) {
    std::string broken = image_;
    broken[at] = static_cast<char>(broken[at] ^ (1 << at % 8));
    const Verdict v = read(broken);
    ASSERT_NE(v, Verdict::wrong) << "byte " << at;
    ASSERT_NE(v, Verdict::foreign) << "byte " << at << ": " << message();
    (v == Verdict::same ? harmless : noticed) += 1;
  }
  EXPECT_GT(noticed, harmless);
}

TEST_F(Damage, zeroed_stretches_are_damage) {
  for (std::size_t at = 0; at + 512 < image_.size(); at += 512) {
    std::string broken = image_;
    std::fill_n(broken.begin() + static_cast<std::ptrdiff_t>(at), 512, '\0');
    const Verdict v = read(broken);
    ASSERT_TRUE(v == Verdict::damaged || v == Verdict::same) << at;
  }
  EXPECT_EQ(read(std::string(image_.size(), '\0')), Verdict::damaged);
}

TEST_F(Damage, the_broken_dataset_is_named) {
  std::string broken = image_;
  const auto at = broken.find(std::string(reinterpret_cast<const char*>(written_.video.data() + 4), 16));
  ASSERT_NE(at, std::string::npos);
  broken[at] = static_cast<char>(broken[at] ^ 4);
  put_bytes(path_, broken);
  EXPECT_EQ(message(), "damaged: the checksum of video_latents does not match its content");
}

TEST_F(Damage, something_else_under_our_name_is_refused) {
  EXPECT_EQ(read("not a checkpoint at all"), Verdict::foreign);
  EXPECT_NE(message().find("x.checkpoint.h5: is not an HDF5 file"), std::string::npos) << message();
  put_bytes(path_, compose_inputs(sample_inputs(1)));
  EXPECT_NE(message().find("format = h3render inputs"), std::string::npos) << message();
  edit([](hid_t file) { H5Adelete(file, "format"); });
  EXPECT_NE(message().find("format = (missing)"), std::string::npos) << message();
  fs::remove(path_);
  EXPECT_NE(message().find("cannot be read: No such file"), std::string::npos) << message();
  fs::create_directory(path_);
  EXPECT_NE(message().find("not a regular file"), std::string::npos) << message();
}

void set_integer(hid_t file, const char* name, std::int64_t value) {
  H5Adelete(file, name);
  const Hdf5Handle space(H5Screate(H5S_SCALAR), H5Sclose, "H5Screate");
  const Hdf5Handle attribute(H5Acreate2(file, name, H5T_STD_I64LE, space.id(), H5P_DEFAULT, H5P_DEFAULT), H5Aclose,
                             "H5Acreate2");
  H5Awrite(attribute.id(), H5T_NATIVE_INT64, &value);
}

TEST_F(Damage, newer_schema_is_refused) {
  edit([](hid_t file) { set_integer(file, "schema", kCheckpointSchema + 1); });
  EXPECT_NE(message().find("schema = 2: this program knows schemas 1 to 1"), std::string::npos) << message();
}

TEST_F(Damage, steps_outside_of_the_schedule_are_refused) {
  edit([](hid_t file) { set_integer(file, "step", kSampleSteps + 1); });
  EXPECT_NE(message().find("step = 1001: must be 0 to 1000"), std::string::npos) << message();
  edit([](hid_t file) { set_integer(file, "steps", 999); });
  EXPECT_NE(message().find("video_sigmas"), std::string::npos) << message();
  edit([](hid_t file) { set_integer(file, "steps", INT64_MAX); });
  EXPECT_NE(message().find("steps = "), std::string::npos) << message();
}

// A dataset with these dimensions that takes no room, as a crafted file may have.
void put_huge(hid_t file, const char* name, std::vector<hsize_t> dims) {
  H5Ldelete(file, name, H5P_DEFAULT);
  const Hdf5Handle space(H5Screate_simple(static_cast<int>(dims.size()), dims.data(), nullptr), H5Sclose, "space");
  const Hdf5Handle creation = hdf5_properties(H5P_DATASET_CREATE);
  const std::vector<hsize_t> chunk(dims.size(), 16);
  H5Pset_chunk(creation.id(), static_cast<int>(dims.size()), chunk.data());
  const Hdf5Handle dataset(H5Dcreate2(file, name, H5T_IEEE_F32LE, space.id(), H5P_DEFAULT, creation.id(), H5P_DEFAULT),
                           H5Dclose, "create");
  const Hdf5Handle text = hdf5_text_type(3), scalar(H5Screate(H5S_SCALAR), H5Sclose, "space");
  const Hdf5Handle dtype(H5Acreate2(dataset.id(), "dtype", text.id(), scalar.id(), H5P_DEFAULT, H5P_DEFAULT), H5Aclose,
                         "attribute");
  H5Awrite(dtype.id(), text.id(), "f32");
}

TEST_F(Damage, absurd_sizes_are_refused_before_any_allocation) {
  const hsize_t huge = hsize_t{1} << 40;
  edit([&](hid_t file) { put_huge(file, "video_latents", {huge, 96}); });
  EXPECT_NE(message().find("video_latents = 422212465065984 bytes: is more than the file has"), std::string::npos)
      << message();
  edit([&](hid_t file) { put_huge(file, "video_latents", {huge, huge}); });
  EXPECT_NE(message().find("is more than the file has"), std::string::npos) << message();
  edit([&](hid_t file) { put_huge(file, "audio_sigmas", {huge}); });
  EXPECT_NE(message().find("audio_sigmas = "), std::string::npos) << message();
}

TEST_F(Damage, wrong_types_and_ranks_are_noticed) {
  edit([](hid_t file) { put_huge(file, "video_latents", {16}); });
  EXPECT_NE(message().find("video_latents has not 2 dimensions"), std::string::npos) << message();
  edit([](hid_t file) { H5Ldelete(file, "audio_latents", H5P_DEFAULT); });
  EXPECT_NE(message().find("damaged: H5Dopen2 failed"), std::string::npos) << message();
}

TEST_F(Damage, inputs_with_a_flipped_bit_never_give_wrong_values) {
  const CheckpointInputs inputs = sample_inputs(1);
  const std::string image = compose_inputs(inputs);
  for (std::size_t at = 0; at < image.size(); at += 3) {
    std::string broken = image;
    broken[at] = static_cast<char>(broken[at] ^ (1 << at % 8));
    put_bytes(path_, broken);
    const Verdict v =
        verdict<std::string>(inputs.content_hash(), [&] { return parse_inputs(path_, kAuto).content_hash(); });
    ASSERT_TRUE(v == Verdict::same || v == Verdict::damaged) << "byte " << at;
  }
}

TEST_F(Damage, a_locked_file_is_read_as_the_mode_says) {
  put_bytes(path_, image_);
  const int fd = ::open(path_.c_str(), O_RDWR);
  ASSERT_EQ(::flock(fd, LOCK_EX), 0);
  EXPECT_THROW(parse_checkpoint(path_, FileLocking::on), UserError);
  EXPECT_EQ(parse_checkpoint(path_, FileLocking::off), written_);
  EXPECT_EQ(parse_checkpoint(path_, FileLocking::automatic), written_);
  ::close(fd);
  EXPECT_EQ(parse_checkpoint(path_, FileLocking::on), written_);
  EXPECT_EQ(parse_file_locking("on", "--hdf5-locking"), FileLocking::on);
  EXPECT_THROW(parse_file_locking("maybe", "--hdf5-locking"), UserError);
}

}  // namespace h3::test
