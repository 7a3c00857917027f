// SPDX-License-Identifier: Apache-2.0
/// \file
/// Reductions over a warp and over a CTA, in an order that never changes.

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

/// Sum over the CTA, in every thread. `scratch` holds kThreads / 32 doubles that
/// nobody else uses until the next CTA barrier. In f64, because what a norm's
/// sum is off by moves every element that the norm rounds.
template <int kThreads>
__device__ __forceinline__ double blockSum(double value, double *scratch) {
  const double mine = warpSum(value);
  if (threadIdx.x % 32 == 0)
    scratch[threadIdx.x / 32] = mine;
  __syncthreads();
  double total = 0;
#pragma unroll
  for (int warp = 0; warp < kThreads / 32; ++warp)
    total += scratch[warp];
  return total;
}

} // namespace mega
