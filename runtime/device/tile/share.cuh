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

/// The part whose run holds `index`: the largest p with share(p).begin <=
/// index. (index + 1) * parts fits 32 bits.
__device__ __forceinline__ int ownerOf(u32 index, u32 total, u32 parts) {
  return int(((index + 1) * parts - 1) / total);
}

/// This CTA's run of a list of bursts; CTAs past the list's end get none.
__device__ __forceinline__ Range shareBursts(int total) {
  const int parts = min(int(gridDim.x), total);
  return int(blockIdx.x) < parts ? share(total, blockIdx.x, parts)
                                 : Range{0, 0};
}

/// Which CTAs add to tile `tile` of a list of `kTiles` tiles of `kBursts`
/// bursts that was shared out burst by burst: the first one, and how many.
template <int kTiles, int kBursts> struct Contributors {
  static constexpr int kTotal = kTiles * kBursts;
  int first, count;

  static __device__ __forceinline__ int parts() {
    return min(int(gridDim.x), kTotal);
  }
  static __device__ __forceinline__ Contributors of(int tile) {
    const int begin = ownerOf(tile * kBursts, kTotal, parts());
    const int end = ownerOf(tile * kBursts + kBursts - 1, kTotal, parts());
    return {begin, end - begin + 1};
  }
};

/// The calling thread's warp. The shuffle tells the compiler that the whole
/// warp has the same, so that what depends on it needs no divergent branches.
__device__ __forceinline__ int warpOfThread() {
  return __shfl_sync(0xffffffffu, int(threadIdx.x) / 32, 0);
}

/// How a list is shared out. What a CTA gets depends on the list and the grid
/// alone, so a launch computes it once (shareOut) and stages look it up: the
/// divisions are some 30 instructions, and code that runs once a stage costs
/// most of its time in being fetched.
struct Share {
  enum Of { kTiles, kBursts, kReversed };
  int total;
  int scale; ///< of kTiles: bursts of a tile
  Of of;     ///< whole tiles; bursts; the last CTA first

  __device__ __forceinline__ Range own() const {
    if (of == kBursts)
      return shareBursts(total);
    const u32 part = of == kReversed ? gridDim.x - 1 - blockIdx.x : blockIdx.x;
    const Range run = share(total, part, gridDim.x);
    return {run.begin * scale, run.end * scale};
  }
};

/// Computes this CTA's part of each list, by the whole CTA.
template <int kCount>
__device__ __forceinline__ void shareOut(Range *to,
                                         const Share (&lists)[kCount]) {
#pragma unroll 1
  for (int i = threadIdx.x; i < kCount; i += int(blockDim.x))
    to[i] = lists[i].own();
}

} // namespace mega
