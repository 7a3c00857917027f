// SPDX-License-Identifier: Apache-2.0
/// \file
/// How a list is shared out in equal runs, and the way back.

namespace mega {

/// A half-open run of indices.
struct Range {
  int begin, end;
};

/// Run `part` of `parts` of [0, total): sizes differ by at most one. `total` is
/// below 2^20 and total * (parts + 1) fits 32 bits: a general division by a
/// run-time number costs more than a trip to L2.
__device__ __forceinline__ Range share(u32 total, u32 part, u32 parts) {
  return {int(divide(total * part, parts)),
          int(divide(total * (part + 1), parts))};
}

/// The same for totals that only the run knows.
__device__ __forceinline__ Range shareLong(int total, int part, int parts) {
  return {int(u32(total) * u64(part) / u32(parts)),
          int(u32(total) * u64(part + 1) / u32(parts))};
}

/// The part whose run holds `index`: the largest p with share(p).begin <=
/// index. (index + 1) * parts fits 32 bits.
__device__ __forceinline__ int ownerOf(u32 index, u32 total, u32 parts) {
  return int(((index + 1) * parts - 1) / total);
}

/// This CTA's run of a list of whole tiles, counted in steps.
__device__ __forceinline__ Range shareTiles(int tiles, int steps) {
  const Range own = share(tiles, blockIdx.x, gridDim.x);
  return {own.begin * steps, own.end * steps};
}

/// This CTA's run of a list of steps; CTAs past the list's end get none.
__device__ __forceinline__ Range shareSteps(int total) {
  const int parts = min(int(gridDim.x), total);
  return int(blockIdx.x) < parts ? share(total, blockIdx.x, parts)
                                 : Range{0, 0};
}

/// Which CTAs add to tile `tile` of a list of `kTiles` tiles of `kSteps` steps
/// that was shared out step by step: the first one, and how many.
template <int kTiles, int kSteps> struct Contributors {
  static constexpr int kTotal = kTiles * kSteps;
  int first, count;

  static __device__ __forceinline__ int parts() {
    return min(int(gridDim.x), kTotal);
  }
  static __device__ __forceinline__ Contributors of(int tile) {
    const int begin = ownerOf(tile * kSteps, kTotal, parts());
    const int end = ownerOf(tile * kSteps + kSteps - 1, kTotal, parts());
    return {begin, end - begin + 1};
  }
};

/// The calling thread's warp. The shuffle tells the compiler that the whole
/// warp has the same, so that what depends on it needs no divergent branches.
__device__ __forceinline__ int warpOfThread() {
  return __shfl_sync(0xffffffffu, int(threadIdx.x) / 32, 0);
}

/// A table of 8-byte words, and where it goes.
struct Table {
  u8 *to;
  const void *from;
  int bytes;
};

/// Copies tables, by the whole CTA: a warp a table, so that all are one trip to
/// memory.
template <int kCount>
__device__ __forceinline__ void copyTables(const Table (&tables)[kCount]) {
  const int warp = warpOfThread(), warps = int(blockDim.x) / 32;
#pragma unroll
  for (int i = 0; i < kCount; ++i)
    if (i % warps == warp)
#pragma unroll 1
      for (int at = threadIdx.x % 32 * 8; at < tables[i].bytes; at += 32 * 8)
        *reinterpret_cast<u64 *>(tables[i].to + at) =
            *reinterpret_cast<const u64 *>(
                static_cast<const u8 *>(tables[i].from) + at);
}

} // namespace mega
