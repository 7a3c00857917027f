// SPDX-License-Identifier: Apache-2.0
/// \file
/// bf16 matrix (outputs x inputs) times a bf16 vector in shared memory.

namespace mega {

template <int kWarps> struct DenseScratch {
  double partial[kWarps];
};

/// Computes rows `rows`; `sink(row, value)` is called by one thread each. The
/// CTA's warps share a row out when there are fewer rows than warps, so that a
/// row is one trip to memory. Sums are f64: router logits are rounded next.
/// kInputs is a multiple of 8; rows are 16-byte aligned. `scratch` is free
/// again after a CTA barrier.
template <int kInputs, int kThreads, typename Sink>
__device__ __forceinline__ void
denseGemv(Range rows, const u16 *weights, const u16 *x,
          DenseScratch<kThreads / 32> &scratch, const Sink &sink) {
  constexpr int kWarps = kThreads / 32, kPieces = kInputs / 8;
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
#pragma unroll 1
  for (int base = rows.begin; base < rows.end; base += kWarps) {
    if (base != rows.begin)
      __syncthreads(); // the last rows' partial sums were read
    const int count = min(kWarps, rows.end - base);
    const int parts = kWarps / count;
    const int own = warp / parts, part = warp % parts;
    double sum = 0;
    if (own < count) {
      const u16 *line = weights + u64(base + own) * kInputs;
#pragma unroll 1
      for (int i = part * 32 + lane; i < kPieces; i += parts * 32) {
        const uint4 w = loadConstant16(line + i * 8);
        const uint4 v = *reinterpret_cast<const uint4 *>(x + i * 8);
        const u32 ws[4] = {w.x, w.y, w.z, w.w}, vs[4] = {v.x, v.y, v.z, v.w};
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
    static_assert(kWarps <= 32, "a lane a warp");
    if (warp < count) {
      sum = warpSum(lane < parts ? scratch.partial[warp * parts + lane] : 0.0);
      if (lane == 0)
        sink(base + warp, float(sum));
    }
  }
}

} // namespace mega
