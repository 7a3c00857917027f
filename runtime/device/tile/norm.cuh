// SPDX-License-Identifier: Apache-2.0
/// \file
/// Root mean square norm of one row by a CTA.

namespace mega {

/// Eight factors of a norm, the same for every CTA, as they lie in memory.
template <typename Weight> struct Factors;
template <> struct Factors<u16> {
  uint4 packed;
  __device__ __forceinline__ void load(const u16 *address) {
    packed = loadConstantPacked(address);
  }
  __device__ __forceinline__ void get(float (&v)[8]) const {
    unpack(packed, v);
  }
};
template <> struct Factors<float> {
  float wide[8];
  __device__ __forceinline__ void load(const float *address) {
#pragma unroll
    for (int j = 0; j < 8; ++j)
      wide[j] = loadConstantFloat(address + j);
  }
  __device__ __forceinline__ void get(float (&v)[8]) const {
#pragma unroll
    for (int j = 0; j < 8; ++j)
      v[j] = wide[j];
  }
};

/// x[i] = (v[i] * rstd) * (w[i] + offset), with rstd = 1 / sqrt(mean(v^2) +
/// epsilon) (Zhang and Sennrich, 2019). `ready()` is called once the factors
/// are on their way and before anything else is. `fetch(i, raw)` loads what
/// elements [i, i + 8) are computed from and `use(i, raw, v)` computes them, so
/// that whatever `loaded()` starts between the two is on its way behind all the
/// loads and before the first is waited for. Thread t works on elements [8t, 8t
/// + 8) and those kThreads * 8 further; kRow is a multiple of 8. `sink(i, x)`
/// is given each piece of the result. `scratch` holds a double a warp. A CTA
/// barrier must follow.
template <typename Raw, int kRow, int kThreads, int kLevels, int kLength,
          typename Weight, typename Ready, typename Fetch, typename Use,
          typename Loaded, typename Sink>
__device__ __forceinline__ void
rmsNorm(const Activation<kLevels, kLength> &x, const Weight *weight,
        float offset, float epsilon, double *scratch, const Ready &ready,
        const Fetch &fetch, const Use &use, const Loaded &loaded,
        const Sink &sink) {
  constexpr int kPieces = kRow / 8;
  constexpr int kOwn = (kPieces + kThreads - 1) / kThreads;
  constexpr int kWarps = (kPieces < kThreads ? kPieces + 31 : kThreads) / 32;
  // Zeros, not undefined: the compiler then keeps them in registers.
  Raw raw[kOwn] = {};
  Factors<Weight> factors[kOwn] = {};
#pragma unroll
  for (int k = 0; k < kOwn; ++k) {
    const int piece = threadIdx.x + k * kThreads;
    if (piece < kPieces)
      factors[k].load(weight + piece * 8);
  }
  ready();
#pragma unroll
  for (int k = 0; k < kOwn; ++k) {
    const int piece = threadIdx.x + k * kThreads;
    if (piece < kPieces)
      fetch(piece * 8, raw[k]);
  }
  loaded();
  float v[kOwn][8] = {};
  double sum = 0;
#pragma unroll
  for (int k = 0; k < kOwn; ++k) {
    const int piece = threadIdx.x + k * kThreads;
    if (piece < kPieces) {
      use(piece * 8, raw[k], v[k]);
#pragma unroll
      for (int j = 0; j < 8; ++j)
        sum = fma(double(v[k][j]), double(v[k][j]), sum);
    }
  }
  const float mean = float(blockSum<kWarps>(sum, scratch)) / float(kRow);
  const float rstd = 1.0f / sqrtf(mean + epsilon);
#pragma unroll
  for (int k = 0; k < (kLength / 8 + kThreads - 1) / kThreads; ++k) {
    const int piece = threadIdx.x + k * kThreads;
    float out[8] = {};
    if (k < kOwn && piece < kPieces) {
      float w[8];
      factors[k].get(w);
#pragma unroll
      for (int j = 0; j < 8; ++j)
        out[j] = (v[k][j] * rstd) * (offset + w[j]);
      sink(piece * 8, out);
    }
    if (piece < kLength / 8)
      x.set8(piece * 8, out);
  }
}

} // namespace mega
