// Small checks that many tests share: what a refusal says, and files to read.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "base/error.h"
#include "support/temporary_folder.h"

namespace h3::test {

// The message of the E that `run` throws; fails the test where it throws none.
template <typename E, typename F>
std::string message_of(F&& run) {
  try {
    run();
  } catch (const E& e) {
    return e.what();
  }
  ADD_FAILURE() << "nothing was thrown";
  return "";
}

inline void expect_has(const std::string& text, const std::string& part) {
  EXPECT_NE(text.find(part), std::string::npos) << "\"" << text << "\" lacks \"" << part << "\"";
}

inline std::filesystem::path write_into(const TemporaryFolder& folder, const std::string& name,
                                        const std::string& content) {
  const auto path = folder.path() / name;
  std::ofstream(path, std::ios::binary) << content;
  return path;
}

inline std::size_t entries_of(const TemporaryFolder& folder) {
  const auto begin = std::filesystem::directory_iterator(folder.path());
  return static_cast<std::size_t>(std::distance(begin, std::filesystem::directory_iterator()));
}

}  // namespace h3::test
