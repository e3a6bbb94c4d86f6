// Attention through cuDNN's fused kernels, for half types. Which engine, with which knobs, computes a kind of attention
// is read off the library's heuristic for one nominal shape and then used for every call, so that slices of heads and
// queries give the same bits. Built graphs are kept by shape and strides.
#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "compute/cuda/cuda_queue.h"
#include "compute/operators.h"
#include "kernels/types.h"

namespace h3 {

struct AttentionKind {
  DType dtype = DType::bf16;
  std::int64_t d = 0;
  bool causal = false, grouped = false;
  auto operator<=>(const AttentionKind&) const = default;
  std::string text() const;
};

class CudnnAttention {
 public:
  CudnnAttention();
  ~CudnnAttention();

  // Is this kind of attention computed here? Half types and head sizes of whole 16-byte pieces up to 128, where cuDNN
  // has an engine for the nominal shape.
  bool covers(CudaQueue& queue, const AttentionKind& kind);
  // Operands aligned to 16 bytes in pointers and strides; rows are `sequences` equal parts that attend to themselves. A
  // causal call's last query row sees the last key.
  void run(CudaQueue& queue, const kernels::Heads& query, const kernels::Heads& key, const kernels::Heads& value,
           const kernels::Heads& o, const AttentionKind& kind, float scale, std::int64_t sequences);

  std::vector<std::string> lines() const;
  void adopt(const std::string& line);

 private:
  struct Engine {
    std::int64_t id = 0;
    std::map<std::int64_t, std::int64_t> knobs;
  };
  struct Layout;
  struct Plan;
  const std::optional<Engine>& engine(CudaQueue& queue, const AttentionKind& kind);
  const Plan& plan(CudaQueue& queue, const AttentionKind& kind, const Layout& layout);

  std::map<AttentionKind, std::optional<Engine>> engines_;
  std::map<Layout, std::unique_ptr<Plan>> plans_;
};

}  // namespace h3
