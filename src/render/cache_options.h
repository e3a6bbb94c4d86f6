// Where encodings are kept between runs, and how much of them, as options of a run and of `cache` say it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>

#include "cache/run_cache.h"
#include "render/run_options.h"

namespace h3 {

// `named`, or the user's where it is empty. Throws UserError naming `option` where neither is known.
std::filesystem::path cache_folder(const std::string& named, const std::string& option);

// Bytes of a number of GiB above 0. Throws UserError naming `option`.
std::uint64_t parse_cache_size(const std::string& text, const std::string& option);

// As --cache, --cache-folder and --cache-size say; null for `off`. Without a folder anywhere: memory alone, with a
// warning.
std::unique_ptr<RunCache> open_run_cache(const RunOptions& options);

}  // namespace h3
