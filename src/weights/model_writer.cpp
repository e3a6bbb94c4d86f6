#include "weights/model_writer.h"

#include <algorithm>
#include <map>

#include "base/error.h"
#include "base/file.h"
#include "weights/config_writer.h"
#include "weights/worker_threads.h"

namespace h3 {

namespace fs = std::filesystem;

namespace {

constexpr std::int64_t kChunkBytes = 8 << 20;

// One tensor of a file to be written.
struct Item {
  const PlannedTensor* tensor = nullptr;
  const StoredPart* part = nullptr;
  std::size_t bytes() const { return static_cast<std::size_t>(part->shape.elements()) * size_of(tensor->dtype); }
};

std::vector<std::vector<Item>> cut_into_shards(const ComponentPlan& plan, std::uint64_t limit) {
  std::vector<std::vector<Item>> shards(1);
  std::uint64_t held = 0;
  for (const PlannedTensor& t : plan.tensors)
    for (const StoredPart& part : t.diffusers) {
      const Item item{&t, &part};
      if (!shards.back().empty() && held + item.bytes() > limit) {
        shards.emplace_back();
        held = 0;
      }
      shards.back().push_back(item);
      held += item.bytes();
    }
  return shards;
}

// Canonical rows that follow each other in a file.
struct Chunk {
  const PlannedTensor* tensor = nullptr;
  std::int64_t begin = 0, end = 0;
};

void add_chunks(const Item& item, std::vector<Chunk>& chunks) {
  std::vector<RowPiece> pieces = row_pieces(*item.tensor, *item.part, 0, item.tensor->rows());
  std::sort(pieces.begin(), pieces.end(), [](const RowPiece& a, const RowPiece& b) { return a.stored < b.stored; });
  const auto row_bytes = std::max<std::int64_t>(1, static_cast<std::int64_t>(item.tensor->row_bytes()));
  const std::int64_t step = std::max<std::int64_t>(1, kChunkBytes / row_bytes);
  for (const RowPiece& p : pieces)
    for (std::int64_t r = 0; r < p.rows; r += step)
      chunks.push_back({item.tensor, p.canonical + r, p.canonical + std::min(r + step, p.rows)});
}

// Values are made by all threads, a batch at a time, and written in order.
void write_chunks(const std::vector<Chunk>& chunks, const TensorSource& source, int threads,
                  SafetensorsWriter& writer) {
  const std::size_t batch = static_cast<std::size_t>(threads) * 4;
  std::vector<std::vector<std::byte>> made(batch);
  for (std::size_t first = 0; first < chunks.size(); first += batch) {
    const std::size_t count = std::min(batch, chunks.size() - first);
    run_tasks(count, threads, [&](std::size_t i) {
      const Chunk& c = chunks[first + i];
      made[i].resize(static_cast<std::size_t>(c.end - c.begin) * c.tensor->row_bytes());
      source.read_rows(*c.tensor, c.begin, c.end, made[i].data());
    });
    for (std::size_t i = 0; i < count; ++i) writer.append(made[i].data(), made[i].size());
  }
}

void write_shard(const fs::path& path, const std::vector<Item>& items, const TensorSource& source, int threads) {
  std::vector<TensorHeader> headers;
  std::map<std::string, Item> by_name;
  for (const Item& item : items) {
    headers.push_back({item.part->name, item.tensor->dtype, item.part->shape});
    by_name[item.part->name] = item;
  }
  sort_for_alignment(headers);
  std::vector<Chunk> chunks;
  for (const TensorHeader& h : headers) add_chunks(by_name.at(h.name), chunks);
  SafetensorsWriter writer(path, headers, {{"format", "pt"}});
  write_chunks(chunks, source, threads, writer);
  writer.commit();
}

void write_component(const fs::path& folder, const ModelFolder& model, Component component, std::uint64_t limit,
                     int threads) {
  const std::string base = component == Component::text_encoder ? "model" : "diffusion_pytorch_model";
  const auto shards = cut_into_shards(model.plan(component), limit);
  nlohmann::ordered_json map = nlohmann::ordered_json::object();
  std::size_t total = 0;
  for (std::size_t i = 0; i < shards.size(); ++i) {
    const std::string name = shards.size() == 1
                                 ? base + ".safetensors"
                                 : fmt::format("{}-{:05}-of-{:05}.safetensors", base, i + 1, shards.size());
    write_shard(folder / name, shards[i], model.source(component), threads);
    for (const Item& item : shards[i]) {
      map[item.part->name] = name;
      total += item.bytes();
    }
  }
  if (shards.size() == 1) return;
  const nlohmann::ordered_json index = {{"metadata", {{"total_size", total}}}, {"weight_map", map}};
  write_file_atomically(folder / (base + ".safetensors.index.json"), index.dump(2) + "\n");
}

void copy_tokenizer(const ModelPaths& from, const fs::path& to) {
  for (const auto& [source, name] : {std::pair{from.tokenizer, "tokenizer"}, std::pair{from.processor, "processor"}}) {
    if (source.empty()) continue;
    fs::create_directories(to / name);
    for (const auto& entry : fs::directory_iterator(source))
      if (entry.is_regular_file() && entry.path().extension() != ".safetensors")
        fs::copy_file(entry.path(), to / name / entry.path().filename());
  }
}

void write_all(const fs::path& folder, const ModelFolder& model, const WriteModelOptions& options) {
  const int threads = options.threads > 0 ? options.threads : default_threads(1);
  for (const auto& [file, content] : config_files(model.config())) {
    fs::create_directories((folder / file).parent_path());
    write_file_atomically(folder / file, content.dump(2) + "\n");
  }
  copy_tokenizer(options.tokenizer_from.empty() ? model.paths() : find_model(options.tokenizer_from), folder);
  write_component(folder / "transformer", model, Component::transformer, options.shard_bytes, threads);
  write_component(folder / "text_encoder", model, Component::text_encoder, options.shard_bytes, threads);
  write_component(folder / "vae", model, Component::video_vae, options.shard_bytes, threads);
  write_component(folder / "audio_vae", model, Component::audio_vae, options.shard_bytes, threads);
}

}  // namespace

void write_model_folder(const fs::path& given, const ModelFolder& model, const WriteModelOptions& options) {
  fs::path folder = given.lexically_normal();
  if (!folder.has_filename()) folder = folder.parent_path();
  std::error_code ec;
  if (fs::exists(fs::symlink_status(folder, ec)))
    throw UserError(given.string(), "", "", "exists already, expected the name of a new folder");
  const fs::path temporary = temporary_path_for(folder);
  try {
    fs::create_directories(temporary);
    write_all(temporary, model, options);
    fs::rename(temporary, folder);
  } catch (const fs::filesystem_error& e) {
    fs::remove_all(temporary, ec);
    throw SceneError(fmt::format("{}: cannot be written: {}", folder.string(), e.code().message()));
  } catch (...) {
    fs::remove_all(temporary, ec);
    throw;
  }
}

}  // namespace h3
