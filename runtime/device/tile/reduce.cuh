// SPDX-License-Identifier: Apache-2.0
/// \file
/// Sums, over a lane's own values, a warp and a CTA, in an order that never
/// changes.

namespace mega {

__device__ __forceinline__ float warpSum(float value) {
#pragma unroll
  for (int delta = 16; delta > 0; delta /= 2)
    value += __shfl_xor_sync(0xffffffffu, value, delta);
  return value;
}

__device__ __forceinline__ float warpMax(float value) {
#pragma unroll
  for (int delta = 16; delta > 0; delta /= 2)
    value = fmaxf(value, __shfl_xor_sync(0xffffffffu, value, delta));
  return value;
}

__device__ __forceinline__ double warpSum(double value) {
#pragma unroll
  for (int delta = 16; delta > 0; delta /= 2)
    value += __shfl_xor_sync(0xffffffffu, value, delta);
  return value;
}

/// kCount values, kStride apart, four chains at a time: an addition in f64 has
/// a long latency.
template <int kCount, int kStride = 1>
__device__ __forceinline__ double sumOf(const double *values) {
  constexpr int kChains = kCount < 4 ? kCount : 4;
  double chains[kChains];
#pragma unroll
  for (int i = 0; i < kCount; ++i)
    chains[i % kChains] = i < kChains
                              ? values[i * kStride]
                              : chains[i % kChains] + values[i * kStride];
#pragma unroll
  for (int i = 1; i < kChains; ++i)
    chains[0] += chains[i];
  return chains[0];
}

/// Sum over the CTA's first kWarps warps, in every thread. `scratch` holds
/// kWarps doubles that nobody else uses until the next CTA barrier. In f64,
/// because what a norm's sum is off by moves every element that the norm
/// rounds.
template <int kWarps>
__device__ __forceinline__ double blockSum(double value, double *scratch) {
  if (threadIdx.x < kWarps * 32) {
    value = warpSum(value);
    if (threadIdx.x % 32 == 0)
      scratch[threadIdx.x / 32] = value;
  }
  __syncthreads();
  return sumOf<kWarps>(scratch);
}

} // namespace mega
