#include "weights/tensor_source.h"

#include <cstring>

#include "base/error.h"
#include "weights/convert.h"

namespace h3 {

std::vector<std::byte> TensorSource::read(const PlannedTensor& tensor) const {
  std::vector<std::byte> data(tensor.bytes());
  read_rows(tensor, 0, tensor.rows(), data.data());
  return data;
}

const FileSource::Stored* FileSource::find(const std::string& name) const {
  const auto it = stored_.find(name);
  return it == stored_.end() ? nullptr : &it->second;
}

void FileSource::read_rows(const PlannedTensor& tensor, std::int64_t begin, std::int64_t end, void* to) const {
  auto* out = static_cast<char*>(to);
  std::vector<std::byte> scratch;
  bool found = false;
  for (const StoredPart& part : stored_parts(tensor, layout_)) {
    const Stored* stored = find(part.name);
    if (stored == nullptr) continue;
    found = true;
    const std::size_t stored_row = static_cast<std::size_t>(tensor.row_elements()) * size_of(stored->entry.dtype);
    for (const RowPiece& piece : row_pieces(tensor, part, begin, end)) {
      char* rows = out + static_cast<std::size_t>(piece.canonical - begin) * tensor.row_bytes();
      const std::uint64_t from = static_cast<std::uint64_t>(piece.stored) * stored_row;
      const std::uint64_t bytes = static_cast<std::uint64_t>(piece.rows) * stored_row;
      if (stored->entry.dtype == tensor.dtype) {
        stored->file->read(stored->entry, from, bytes, rows);
        continue;
      }
      scratch.resize(bytes);
      stored->file->read(stored->entry, from, bytes, scratch.data());
      convert(scratch.data(), stored->entry.dtype, rows, tensor.dtype, piece.rows * tensor.row_elements());
    }
  }
  if (found) return;
  // Checked when the files were opened: what no file holds, the configuration determines.
  CHECK_EQ(tensor.values.size(), static_cast<std::size_t>(tensor.shape.elements()));
  std::memcpy(out, tensor.values.data() + begin * tensor.row_elements(),
              static_cast<std::size_t>(end - begin) * tensor.row_bytes());
}

}  // namespace h3
