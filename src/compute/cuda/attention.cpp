// Who computes attention, by compute capability, element type and head size; never by the size of a call, whose slices
// must take the same way (spec/dit.md 7.4).
#include "base/error.h"
#include "compute/cuda/cuda_operators.h"
#include "compute/cuda/cuda_queue.h"
#include "compute/cuda/views.h"
#include "compute/named_range.h"
#include "kernels/attention_plain.h"
#include "kernels/attention_sm90.h"
#include "kernels/rows.h"

namespace h3 {

using namespace cuda;

namespace {

enum class Kernel : std::uint8_t { plain, cudnn, sm90, sm90_f16 };

Kernel kernel_for(AttentionEngine engine, int capability, const AttentionKind& kind, CudaQueue& queue,
                  CudnnAttention& cudnn) {
  if (capability == 90 && engine != AttentionEngine::cudnn && !kind.causal && !kind.grouped) {
    if (kind.dtype == DType::bf16 && kind.d == 128) return Kernel::sm90;
    if (kind.dtype == DType::f16 && kind.d == 64) return Kernel::sm90_f16;
  }
  if (engine != AttentionEngine::own && cudnn.covers(queue, kind)) return Kernel::cudnn;
  return Kernel::plain;
}

struct Operands {
  kernels::Heads query, key, value, o;
  // The i-th of n equal parts of the rows.
  Operands part(std::int64_t i, std::int64_t n) const {
    const auto cut = [&](kernels::Heads t) {
      t.rows /= n;
      t.data = static_cast<char*>(t.data) + i * t.rows * t.row_stride * kernels::bytes_of(t.type);
      return t;
    };
    return {cut(query), cut(key), cut(value), cut(o)};
  }
};

// Of one of `sequences`.
AttentionSm90Args sm90_args(const Operands& x, float scale, std::int64_t sequences) {
  AttentionSm90Args args;
  args.q = x.query.data;
  args.k = x.key.data;
  args.v = x.value.data;
  args.o = x.o.data;
  args.rows_q = static_cast<int>(x.query.rows / sequences);
  args.rows_k = static_cast<int>(x.key.rows / sequences);
  args.heads = static_cast<int>(x.query.heads);
  const auto strides = [](const kernels::Heads& t) { return AttentionSm90Strides{t.row_stride, t.head_stride}; };
  args.q_stride = strides(x.query);
  args.k_stride = strides(x.key);
  args.v_stride = strides(x.value);
  args.o_stride = strides(x.o);
  args.scale = scale;
  return args;
}

// cuDNN's kernels take no single query row: it runs beside a copy of itself, and last, where a causal row sees all
// keys.
void run_cudnn(const Operands& x, CudnnAttention& cudnn, CudaQueue& queue, const AttentionKind& kind, float scale,
               std::int64_t sequences) {
  if (x.query.rows > 1) return cudnn.run(queue, x.query, x.key, x.value, x.o, kind, scale, sequences);
  const std::int64_t size = kernels::bytes_of(x.query.type), head = kind.d * size, row = x.query.heads * head;
  CHECK_LE(4 * row, static_cast<std::int64_t>(CudaQueue::kScratch));
  const auto place = [&](std::int64_t index) { return static_cast<char*>(queue.scratch()) + index * row; };
  const auto move = [&](const kernels::ByteRows& from, const kernels::ByteRows& to) {
    H3_CUDA(kernels::move_rows(from, nullptr, x.query.heads, head, to, queue.stream()));
  };
  move({x.query.data, x.query.head_stride * size}, {place(0), head});
  move({x.query.data, x.query.head_stride * size}, {place(1), head});
  kernels::Heads two{place(0), 2, x.query.heads, kind.d, x.query.heads * kind.d, kind.d, x.query.type}, out = two;
  out.data = place(2);
  cudnn.run(queue, two, x.key, x.value, out, kind, scale, 1);
  move({place(3), head}, {x.o.data, x.o.head_stride * size});
}

Operands checked(const Tensor& query, const Tensor& key, const Tensor& value, const Tensor& o) {
  const Operands x{heads(query), heads(key), heads(value), heads(o)};
  check_same_shape(query, o);
  check_same_shape(key, value);
  for (const Tensor* t : {&key, &value, &o}) {
    check_dtype(*t, query.dtype);
    CHECK_EQ(t->size(2), query.size(2));
  }
  CHECK_GE(x.key.rows, 1);
  CHECK_GE(x.key.heads, 1);
  CHECK_EQ(x.query.heads % x.key.heads, 0);
  return x;
}

}  // namespace

KernelResources own_attention_resources() {
  cudaFuncAttributes attributes{};
  H3_CUDA(h3_attention_sm90_attributes(&attributes));
  return {attributes.numRegs, static_cast<int>(attributes.localSizeBytes)};
}

void CudaOperators::attention(Queue& q, const Tensor& query, const Tensor& key, const Tensor& value, const Tensor& o,
                              const Attention& spec) {
  const NamedRange range("attention");
  CudaQueue& queue = cuda_queue(q);
  if (query.elements() == 0) return;
  Operands x = checked(query, key, value, o);
  CHECK_GE(spec.sequences, 1);
  CHECK_EQ(x.query.rows % spec.sequences, 0);
  CHECK_EQ(x.key.rows % spec.sequences, 0);
  H3_CHECK(spec.sequences == 1 || !spec.causal, "several sequences have no causal mask");
  if (spec.causal) {
    CHECK_GE(spec.first_query_row, 0);
    // Keys that nobody sees are left out, so that the last query row sees the last key.
    const std::int64_t seen = spec.first_query_row + x.query.rows;
    H3_CHECK(seen <= x.key.rows, fmt::format("causal query row {} has no key of its own", seen - 1));
    x.key.rows = x.value.rows = seen;
  }
  const AttentionKind kind{query.dtype, query.size(2), spec.causal, x.query.heads != x.key.heads};
  // A row that sees one key is that key's value, whoever computes it; cuDNN wants more.
  Kernel kernel = kernel_for(options_.attention, capability_, kind, queue, cudnn_);
  if (kernel == Kernel::cudnn && spec.causal && x.key.rows == 1) kernel = Kernel::plain;
  if (kernel == Kernel::sm90_f16) {
    const AttentionSm90Args args = sm90_args(x, spec.scale, spec.sequences);
    H3_CUDA(h3_attention_sm90_f16(args, static_cast<int>(spec.sequences), spec.sanitize, queue.stream()));
    return;
  }
  const bool together = spec.sequences == 1 || (kernel == Kernel::cudnn && x.query.rows > spec.sequences);
  const std::int64_t calls = together ? 1 : spec.sequences;
  for (std::int64_t i = 0; i < calls; ++i) {
    const Operands part = x.part(i, calls);
    switch (kernel) {
      case Kernel::sm90:
        H3_CUDA(h3_attention_sm90(sm90_args(part, spec.scale, 1), queue.stream()));
        break;
      case Kernel::cudnn:
        run_cudnn(part, cudnn_, queue, kind, spec.scale, spec.sequences / calls);
        break;
      case Kernel::sm90_f16:
      case Kernel::plain: {
        const kernels::AttentionMask mask{spec.scale, spec.causal, spec.first_query_row};
        H3_CUDA(kernels::attention_plain(part.query, part.key, part.value, part.o, mask, queue.stream()));
        break;
      }
    }
  }
  if (spec.sanitize) sanitize(q, o);
}

}  // namespace h3
