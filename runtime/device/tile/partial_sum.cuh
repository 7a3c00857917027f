// SPDX-License-Identifier: Apache-2.0
/// \file
/// Adds the partial sums that a split reduction left, in slot order.

namespace mega {

/// Element `index` of a list that quantGemv ran step by step over the grid;
/// slot s of kLength floats holds the s-th contributor's sums.
template <int kTiles, int kSteps, int kSlots, int kLength>
__device__ __forceinline__ float sumContributors(const float *slots,
                                                 int tile, int index) {
  const int count = Contributors<kTiles, kSteps>::of(tile).count;
  float part[kSlots];
#pragma unroll
  for (int slot = 0; slot < kSlots; ++slot)
    part[slot] =
        slot < count ? loadSharedFloat(slots + slot * kLength + index) : 0.0f;
  float sum = 0;
#pragma unroll
  for (int slot = 0; slot < kSlots; ++slot)
    sum += part[slot];
  return sum;
}

/// The same for a fixed number of slots, all of them full.
template <int kSlots, int kLength>
__device__ __forceinline__ float sumSlots(const float *slots, int index) {
  float part[kSlots];
#pragma unroll
  for (int slot = 0; slot < kSlots; ++slot)
    part[slot] = loadSharedFloat(slots + slot * kLength + index);
  float sum = 0;
#pragma unroll
  for (int slot = 0; slot < kSlots; ++slot)
    sum += part[slot];
  return sum;
}

} // namespace mega
