// The commands, one file each. Words are what follows the command's name; the result is the exit code.
#pragma once

#include <string>
#include <vector>

namespace h3 {

int run_render(const std::vector<std::string>& words);
int run_check(const std::vector<std::string>& words);
int run_plan(const std::vector<std::string>& words);
int run_inspect(const std::vector<std::string>& words);
int run_compare(const std::vector<std::string>& words);
int run_join(const std::vector<std::string>& words);
int run_make_model(const std::vector<std::string>& words);
int run_status(const std::vector<std::string>& words);
int run_cache(const std::vector<std::string>& words);
int run_bench(const std::vector<std::string>& words);

}  // namespace h3
