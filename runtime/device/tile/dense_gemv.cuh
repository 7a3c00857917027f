// SPDX-License-Identifier: Apache-2.0
/// \file
/// bf16 matrix (outputs x inputs) times a bf16 vector in shared memory.

namespace mega {

/// Computes rows `rows`, a warp each; `sink(row, value)` is called by one lane.
/// kInputs is a multiple of 8; rows are 16-byte aligned.
template <int kInputs, int kThreads, typename Sink>
__device__ __forceinline__ void denseGemv(Range rows, const u16 *weights,
                                          const u16 *x, const Sink &sink) {
  const int lane = threadIdx.x % 32;
  for (int row = rows.begin + int(threadIdx.x) / 32; row < rows.end;
       row += kThreads / 32) {
    const u16 *line = weights + u64(row) * kInputs;
    float sum = 0;
#pragma unroll 4
    for (int i = lane * 8; i < kInputs; i += 32 * 8) {
      const uint4 w = loadConstant16(line + i);
      const uint4 v = *reinterpret_cast<const uint4 *>(x + i);
      const u32 ws[4] = {w.x, w.y, w.z, w.w}, vs[4] = {v.x, v.y, v.z, v.w};
#pragma unroll
      for (int j = 0; j < 4; ++j) {
        sum = fmaf(bf16ToFloat(u16(ws[j])), bf16ToFloat(u16(vs[j])), sum);
        sum = fmaf(bf16ToFloat(u16(ws[j] >> 16)), bf16ToFloat(u16(vs[j] >> 16)),
                   sum);
      }
    }
    sum = warpSum(sum);
    if (lane == 0)
      sink(row, sum);
  }
}

} // namespace mega
