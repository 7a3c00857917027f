// SPDX-License-Identifier: Apache-2.0
/// \file
/// bf16 matrix (outputs x inputs) times a bf16 vector in shared memory.

namespace mega {

template <int kWarps> struct DenseScratch {
  double partial[kWarps];
};

/// A CTA's rows of a matrix with kInputs columns, a multiple of 8; rows are
/// 16-byte aligned. Warps share a row out when there are fewer rows than warps,
/// so that a row is one trip to memory. A stage asks for each thread's first
/// piece before it works on its activations.
template <int kInputs, int kThreads> struct DenseRows {
  static constexpr int kWarps = kThreads / 32, kPieces = kInputs / 8;
  static_assert(kWarps <= 32 && (kWarps & (kWarps - 1)) == 0,
                "a lane a warp; parts of a row are powers of two");

  Range rows;
  const u16 *weights;
  uint4 piece; ///< the first that the thread has to do with

  /// Takes up rows `own` of the matrix `matrix` and starts the first loads.
  __device__ __forceinline__ void ask(Range own, const u16 *matrix) {
    rows = own;
    weights = matrix;
    piece = {0, 0, 0, 0};
    if (rows.begin < rows.end)
      piece = load(rows.begin);
  }

  /// Warps a row when `count` rows are left, at least one and at most a row a
  /// warp: the power of two that this is the logarithm of.
  static __device__ __forceinline__ int logParts(int count) {
    return __clz(count - 1) - __clz(kWarps - 1);
  }
  /// The thread's first piece when rows from `base` on are left.
  __device__ __forceinline__ uint4 load(int base) const {
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    const int left = min(kWarps, rows.end - base), log = logParts(left);
    const int row = warp >> log;
    const int index = (warp - (row << log)) * 32 + lane;
    if (row < left && index < kPieces)
      return at(base + row, index);
    return {0, 0, 0, 0};
  }
  __device__ __forceinline__ uint4 at(int row, int index) const {
    return loadConstant16(weights + u64(row) * kInputs + index * 8);
  }
};

/// Computes the rows of `dense`, which has asked; `sink(row, value)` is called
/// by one thread each. Sums are f64: router logits are rounded next. `scratch`
/// is free again after a CTA barrier.
template <int kInputs, int kThreads, typename Sink>
__device__ __forceinline__ void
denseGemv(DenseRows<kInputs, kThreads> dense, const u16 *x,
          DenseScratch<kThreads / 32> &scratch, const Sink &sink) {
  constexpr int kWarps = kThreads / 32, kPieces = kInputs / 8;
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
#pragma unroll 1
  for (int base = dense.rows.begin; base < dense.rows.end; base += kWarps) {
    if (base != dense.rows.begin) {
      __syncthreads(); // the last rows' partial sums were read
      dense.piece = dense.load(base);
    }
    const int count = min(kWarps, dense.rows.end - base);
    const int log = dense.logParts(count), parts = 1 << log;
    const int own = warp >> log;
    double sum = 0;
    if (own < count) {
      uint4 w = dense.piece;
#pragma unroll 1
      for (int i = (warp - (own << log)) * 32 + lane; i < kPieces;) {
        const uint4 v = *reinterpret_cast<const uint4 *>(x + i * 8);
        const u32 ws[4] = {w.x, w.y, w.z, w.w}, vs[4] = {v.x, v.y, v.z, v.w};
        i += parts * 32;
        if (i < kPieces)
          w = dense.at(base + own, i);
#pragma unroll
        for (int j = 0; j < 4; ++j) {
          // Products of two bf16 are exact in f32.
          sum += bf16ToFloat(u16(ws[j])) * bf16ToFloat(u16(vs[j]));
          sum += bf16ToFloat(u16(ws[j] >> 16)) * bf16ToFloat(u16(vs[j] >> 16));
        }
      }
    }
    sum = warpSum(sum);
    if (lane == 0)
      scratch.partial[warp] = sum;
    __syncthreads();
    // A warp adds a row's sums, which are no more than its lanes.
    if (warp < count) {
      sum = warpSum(lane < parts ? scratch.partial[warp * parts + lane] : 0.0);
      if (lane == 0)
        sink(base + warp, float(sum));
    }
  }
}

} // namespace mega
