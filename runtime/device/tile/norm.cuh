// SPDX-License-Identifier: Apache-2.0
/// \file
/// Root mean square norm of one row by a CTA.

namespace mega {

/// Eight factors of a norm, the same for every CTA.
__device__ __forceinline__ void loadFactors(const u16 *address, float (&v)[8]) {
  unpack(loadConstantPacked(address), v);
}
__device__ __forceinline__ void loadFactors(const float *address,
                                            float (&v)[8]) {
#pragma unroll
  for (int j = 0; j < 8; ++j)
    v[j] = loadConstantFloat(address + j);
}

/// x[i] = (v[i] * rstd) * (w[i] + offset), with rstd = 1 / sqrt(mean(v^2) +
/// epsilon) (Zhang and Sennrich, 2019). `input(i, v)` gives elements [i, i +
/// 8). Thread t works on elements [8t, 8t + 8) and those kThreads * 8 further;
/// kRow is a multiple of 8. `loaded()` is called once the loads are on their
/// way. `scratch` holds a double a warp. A CTA barrier must follow.
template <int kRow, int kThreads, int kLevels, int kLength, typename Weight,
          typename Input, typename Loaded>
__device__ __forceinline__ void
rmsNorm(const Activation<kLevels, kLength> &x, const Weight *weight,
        float offset, float epsilon, double *scratch, const Input &input,
        const Loaded &loaded) {
  constexpr int kPieces = kRow / 8;
  constexpr int kOwn = (kPieces + kThreads - 1) / kThreads;
  constexpr int kWarps = (kPieces < kThreads ? kPieces + 31 : kThreads) / 32;
  // Zeros, not undefined: the compiler then keeps them in registers.
  float v[kOwn][8] = {}, w[kOwn][8] = {};
  double sum = 0;
#pragma unroll
  for (int k = 0; k < kOwn; ++k) {
    const int piece = threadIdx.x + k * kThreads;
    if (piece < kPieces) {
      input(piece * 8, v[k]);
      loadFactors(weight + piece * 8, w[k]);
    }
  }
  loaded();
#pragma unroll
  for (int k = 0; k < kOwn; ++k)
    if (threadIdx.x + k * kThreads < kPieces)
#pragma unroll
      for (int j = 0; j < 8; ++j)
        sum = fma(double(v[k][j]), double(v[k][j]), sum);
  const float mean = float(blockSum<kWarps>(sum, scratch)) / float(kRow);
  const float rstd = 1.0f / sqrtf(mean + epsilon);
#pragma unroll
  for (int k = 0; k < (kLength / 8 + kThreads - 1) / kThreads; ++k) {
    const int piece = threadIdx.x + k * kThreads;
    float out[8] = {};
    if (k < kOwn && piece < kPieces)
#pragma unroll
      for (int j = 0; j < 8; ++j)
        out[j] = (v[k][j] * rstd) * (offset + w[k][j]);
    if (piece < kLength / 8)
      x.set8(piece * 8, out);
  }
}

} // namespace mega
