// The instructions of Hopper (sm_90a) that CUDA C++ has no words for, one function each: memory barriers in shared
// memory, bulk tensor copies, warpgroup matrix products, named barriers. Shared memory is addressed by 32-bit numbers.
// Names follow the PTX manual; whoever reads a kernel needs this file only to see which instruction a name stands for.
#pragma once

#include <cuda.h>
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cstdint>

namespace h3::kernels::sm90 {

__device__ __forceinline__ std::uint32_t shared_address(const void* p) {
  return static_cast<std::uint32_t>(__cvta_generic_to_shared(p));
}

// ---- mbarriers: a phase ends when all announced arrivals and all announced bytes have come; phases alternate 0, 1.

__device__ __forceinline__ void barrier_init(std::uint32_t barrier, std::uint32_t arrivals) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(barrier), "r"(arrivals) : "memory");
}

// Makes initialised barriers visible to the copy engine and to the other block of the cluster.
__device__ __forceinline__ void fence_barrier_init() {
  asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}

__device__ __forceinline__ void arrive(std::uint32_t barrier) {
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(barrier) : "memory");
}

// Arrives at the barrier of the same address in another block of the cluster. Orders no memory across blocks by itself:
// meant for "I have read this", after reads that are known to be complete.
__device__ __forceinline__ void arrive_at_block(std::uint32_t barrier, std::uint32_t block) {
  asm volatile(
      "{\n .reg .b32 remote;\n mapa.shared::cluster.u32 remote, %0, %1;\n"
      " mbarrier.arrive.shared::cluster.b64 _, [remote];\n}" ::"r"(barrier),
      "r"(block)
      : "memory");
}

// Arrives and announces bytes that a bulk copy will bring.
__device__ __forceinline__ void arrive_expecting(std::uint32_t barrier, std::uint32_t bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier), "r"(bytes) : "memory");
}

// Waits until the phase of this parity has ended. A fresh barrier counts as being past phase 1.
__device__ __forceinline__ void wait(std::uint32_t barrier, std::uint32_t parity) {
  std::uint32_t done;
  do {
    asm volatile("{\n .reg .pred p;\n mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2;\n selp.u32 %0, 1, 0, p;\n}"
                 : "=r"(done)
                 : "r"(barrier), "r"(parity)
                 : "memory");
  } while (done == 0);
}

// ---- named barriers, for a fixed number of threads

__device__ __forceinline__ void named_sync(int id, int threads) {
  asm volatile("bar.sync %0, %1;" ::"r"(id), "r"(threads) : "memory");
}

__device__ __forceinline__ void named_arrive(int id, int threads) {
  asm volatile("bar.arrive %0, %1;" ::"r"(id), "r"(threads) : "memory");
}

// ---- clusters

__device__ __forceinline__ std::uint32_t block_in_cluster() {
  std::uint32_t rank;
  asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
  return rank;
}

__device__ __forceinline__ void cluster_sync() {
  asm volatile("barrier.cluster.arrive.release;\n barrier.cluster.wait.acquire;" ::: "memory");
}

// ---- bulk tensor copies from global to shared memory, completing on a barrier

struct TileCoordinates {
  int c0, c1, c2, c3;  // fastest axis first
};

__device__ __forceinline__ void copy_tile(std::uint32_t target, const CUtensorMap& map, std::uint32_t barrier,
                                          const TileCoordinates& at) {
  asm volatile(
      "cp.async.bulk.tensor.4d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%3, %4, %5, %6}], "
      "[%2];" ::"r"(target),
      "l"(&map), "r"(barrier), "r"(at.c0), "r"(at.c1), "r"(at.c2), "r"(at.c3)
      : "memory");
}

// The same bytes into the same address of every block in `blocks`, each block's own barrier counting them.
__device__ __forceinline__ void copy_tile_to_blocks(std::uint32_t target, const CUtensorMap& map, std::uint32_t barrier,
                                                    const TileCoordinates& at, std::uint16_t blocks) {
  asm volatile(
      "cp.async.bulk.tensor.4d.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster"
      " [%0], [%1, {%3, %4, %5, %6}], [%2], %7;" ::"r"(target),
      "l"(&map), "r"(barrier), "r"(at.c0), "r"(at.c1), "r"(at.c2), "r"(at.c3), "h"(blocks)
      : "memory");
}

__device__ __forceinline__ void prefetch_map(const CUtensorMap& map) {
  asm volatile("prefetch.tensormap [%0];" ::"l"(&map) : "memory");
}

// ---- four 8x8 matrices of 16-bit elements from shared memory; each lane gives the address of one row

__device__ __forceinline__ void load_matrices(std::uint32_t (&r)[4], std::uint32_t row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"(row)
               : "memory");
}

// ---- warpgroup matrix products: D[64, n] += A[64, 16] . B[16, n], half types to f32, asynchronous in groups

// Shared-memory operands of 128-byte rows, swizzled as the copy engine does it, in slabs of 64 columns. `stride` is the
// distance of the slabs in bytes where the row runs along n (value), unused where it runs along k (query, key).
struct Operand {
  std::uint32_t low;
  __device__ __forceinline__ Operand(std::uint32_t address, std::uint32_t stride)
      : low(((address >> 4) & 0x3FFF) | (stride >> 4) << 16) {}
  __device__ __forceinline__ std::uint64_t at(std::uint32_t bytes) const {
    constexpr std::uint64_t kRowsOfEight = 1024 >> 4, kSwizzle128 = 1ull << 62;
    return kSwizzle128 | kRowsOfEight << 32 | (low + (bytes >> 4));
  }
};

#define H3_FLOATS_8(d, i)                                                                                     \
  "+f"(d[i]), "+f"(d[i + 1]), "+f"(d[i + 2]), "+f"(d[i + 3]), "+f"(d[i + 4]), "+f"(d[i + 5]), "+f"(d[i + 6]), \
      "+f"(d[i + 7])
#define H3_FLOATS_32(d) H3_FLOATS_8(d, 0), H3_FLOATS_8(d, 8), H3_FLOATS_8(d, 16), H3_FLOATS_8(d, 24)
#define H3_FLOATS_40(d) H3_FLOATS_32(d), H3_FLOATS_8(d, 32)
#define H3_FLOATS_48(d) H3_FLOATS_40(d), H3_FLOATS_8(d, 40)
#define H3_FLOATS_64(d) H3_FLOATS_48(d), H3_FLOATS_8(d, 48), H3_FLOATS_8(d, 56)
#define H3_NAMES_32                                                                                      \
  "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, %20, %21, " \
  "%22, %23, %24, %25, %26, %27, %28, %29, %30, %31"
#define H3_NAMES_40 H3_NAMES_32 ", %32, %33, %34, %35, %36, %37, %38, %39"
#define H3_NAMES_48 H3_NAMES_40 ", %40, %41, %42, %43, %44, %45, %46, %47"
#define H3_NAMES_64 H3_NAMES_48 ", %48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63"

// By element type, the products that its kernel needs. `multiply`: B in shared memory with its rows along k; not
// accumulating means D is overwritten. `multiply_transposed`: A in registers, B's rows along n; always accumulates.
template <typename T>
struct Products;

template <>
struct Products<__nv_bfloat16> {
  // n = 80, A in shared memory.
  __device__ __forceinline__ static void multiply(float (&d)[40], std::uint64_t a, std::uint64_t b, bool accumulate) {
    asm volatile(
        "{\n .reg .pred p;\n setp.ne.b32 p, %42, 0;\n"
        " wgmma.mma_async.sync.aligned.m64n80k16.f32.bf16.bf16 {" H3_NAMES_40 "}, %40, %41, p, 1, 1, 0, 0;\n}"
        : H3_FLOATS_40(d)
        : "l"(a), "l"(b), "r"(static_cast<int>(accumulate)));
  }
  // n = 80, A in registers.
  __device__ __forceinline__ static void multiply(float (&d)[40], const std::uint32_t (&a)[4], std::uint64_t b,
                                                  bool accumulate) {
    asm volatile(
        "{\n .reg .pred p;\n setp.ne.b32 p, %45, 0;\n"
        " wgmma.mma_async.sync.aligned.m64n80k16.f32.bf16.bf16 {" H3_NAMES_40
        "}, {%40, %41, %42, %43}, %44, p, 1, 1, 0;\n}"
        : H3_FLOATS_40(d)
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"(static_cast<int>(accumulate)));
  }
  // n = 128
  __device__ __forceinline__ static void multiply_transposed(float (&d)[64], const std::uint32_t (&a)[4],
                                                             std::uint64_t b) {
    asm volatile(
        "{\n .reg .pred p;\n setp.eq.b32 p, 0, 0;\n"
        " wgmma.mma_async.sync.aligned.m64n128k16.f32.bf16.bf16 {" H3_NAMES_64
        "}, {%64, %65, %66, %67}, %68, p, 1, 1, 1;\n}"
        : H3_FLOATS_64(d)
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b));
  }
};

template <>
struct Products<__half> {
  // n = 128, A in shared memory.
  __device__ __forceinline__ static void multiply(float (&d)[64], std::uint64_t a, std::uint64_t b, bool accumulate) {
    asm volatile(
        "{\n .reg .pred p;\n setp.ne.b32 p, %66, 0;\n"
        " wgmma.mma_async.sync.aligned.m64n128k16.f32.f16.f16 {" H3_NAMES_64 "}, %64, %65, p, 1, 1, 0, 0;\n}"
        : H3_FLOATS_64(d)
        : "l"(a), "l"(b), "r"(static_cast<int>(accumulate)));
  }
  // n = 96, A in shared memory.
  __device__ __forceinline__ static void multiply(float (&d)[48], std::uint64_t a, std::uint64_t b, bool accumulate) {
    asm volatile(
        "{\n .reg .pred p;\n setp.ne.b32 p, %50, 0;\n"
        " wgmma.mma_async.sync.aligned.m64n96k16.f32.f16.f16 {" H3_NAMES_48 "}, %48, %49, p, 1, 1, 0, 0;\n}"
        : H3_FLOATS_48(d)
        : "l"(a), "l"(b), "r"(static_cast<int>(accumulate)));
  }
  // n = 96, A in registers.
  __device__ __forceinline__ static void multiply(float (&d)[48], const std::uint32_t (&a)[4], std::uint64_t b,
                                                  bool accumulate) {
    asm volatile(
        "{\n .reg .pred p;\n setp.ne.b32 p, %53, 0;\n"
        " wgmma.mma_async.sync.aligned.m64n96k16.f32.f16.f16 {" H3_NAMES_48
        "}, {%48, %49, %50, %51}, %52, p, 1, 1, 0;\n}"
        : H3_FLOATS_48(d)
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"(static_cast<int>(accumulate)));
  }
  // n = 64
  __device__ __forceinline__ static void multiply_transposed(float (&d)[32], const std::uint32_t (&a)[4],
                                                             std::uint64_t b) {
    asm volatile(
        "{\n .reg .pred p;\n setp.eq.b32 p, 0, 0;\n"
        " wgmma.mma_async.sync.aligned.m64n64k16.f32.f16.f16 {" H3_NAMES_32
        "}, {%32, %33, %34, %35}, %36, p, 1, 1, 1;\n}"
        : H3_FLOATS_32(d)
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b));
  }
};

// Before the first product after registers of a product were written by other instructions.
__device__ __forceinline__ void fence_products() {
  asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
}

__device__ __forceinline__ void commit_products() {
  asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}

// Waits until at most `kPending` groups are under way. `d` is the result that may be read from here on: naming it keeps
// the compiler from reading it earlier.
template <int kPending>
__device__ __forceinline__ void wait_products(float (&d)[32]) {
  asm volatile("wgmma.wait_group.sync.aligned %32;" : H3_FLOATS_32(d) : "n"(kPending) : "memory");
}
template <int kPending>
__device__ __forceinline__ void wait_products(float (&d)[40]) {
  asm volatile("wgmma.wait_group.sync.aligned %40;" : H3_FLOATS_40(d) : "n"(kPending) : "memory");
}
template <int kPending>
__device__ __forceinline__ void wait_products(float (&d)[48]) {
  asm volatile("wgmma.wait_group.sync.aligned %48;" : H3_FLOATS_48(d) : "n"(kPending) : "memory");
}
template <int kPending>
__device__ __forceinline__ void wait_products(float (&d)[64]) {
  asm volatile("wgmma.wait_group.sync.aligned %64;" : H3_FLOATS_64(d) : "n"(kPending) : "memory");
}
#undef H3_FLOATS_8
#undef H3_FLOATS_32
#undef H3_FLOATS_40
#undef H3_FLOATS_48
#undef H3_FLOATS_64
#undef H3_NAMES_32
#undef H3_NAMES_40
#undef H3_NAMES_48
#undef H3_NAMES_64

// ---- registers of a warpgroup

template <int kRegisters>
__device__ __forceinline__ void give_registers() {
  asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(kRegisters));
}
template <int kRegisters>
__device__ __forceinline__ void take_registers() {
  asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(kRegisters));
}

// ---- arithmetic

// 2^x to about two units in the last place; results below 2^-126 are zero. 2^0 is exactly 1.
__device__ __forceinline__ float exp2_fast(float x) {
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}

// Two floats in a half type, rounded to nearest even; `low` goes to the lower address.
template <typename T>
__device__ __forceinline__ std::uint32_t pack(float low, float high);
template <>
__device__ __forceinline__ std::uint32_t pack<__half>(float low, float high) {
  std::uint32_t y;
  asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(y) : "f"(high), "f"(low));
  return y;
}
template <>
__device__ __forceinline__ std::uint32_t pack<__nv_bfloat16>(float low, float high) {
  std::uint32_t y;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(y) : "f"(high), "f"(low));
  return y;
}

// The thread's number, read afresh each time, so that it holds no register between uses.
__device__ __forceinline__ int thread_number() {
  int t;
  asm volatile("mov.u32 %0, %%tid.x;" : "=r"(t));
  return t;
}

// ---- rings of slots in shared memory, which a producer fills and consumers free in one order

template <int kSlots>
struct RingPlace {
  std::uint32_t slot = 0, phase = 0;
  __device__ __forceinline__ void advance() {
    if (++slot == kSlots) {
      slot = 0;
      phase ^= 1;
    }
  }
};

}  // namespace h3::kernels::sm90
