// Names files that are not what a model needs: adapters, ControlNets, quantized and pruned files. Told from tensor
// names alone (spec/dit.md 2.3 to 2.6 and 6.2), so that a wrong file is refused for what it is before anything is
// loaded.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace h3 {

// What a file with these tensors is, as the end of a sentence that begins with "is ", or "" when it may be a base
// model.
std::string foreign_kind(const std::vector<std::string_view>& tensor_names);

// Throws the UserError for a single file given where a model folder is expected.
[[noreturn]] void refuse_single_file(const std::string& given, const std::filesystem::path& file);

}  // namespace h3
