// SPDX-License-Identifier: Apache-2.0
/// \file
/// Adds the partial sums that a split reduction left, in slot order.

namespace mega {

/// Elements [index, index + 8) of slots of kLength floats, of which `count` are
/// full. index and kLength are multiples of 8. All slots are asked for before
/// the first is used.
template <int kSlots, int kLength>
__device__ __forceinline__ void sumSlots(const float *slots, int count,
                                         int index, float (&sum)[8]) {
  float4 parts[kSlots][2];
#pragma unroll
  for (int slot = 0; slot < kSlots; ++slot)
#pragma unroll
    for (int half = 0; half < 2; ++half)
      parts[slot][half] =
          slot < count
              ? loadSharedFloat4(slots + slot * kLength + index + half * 4)
              : float4{0, 0, 0, 0};
#pragma unroll
  for (int j = 0; j < 8; ++j) {
    sum[j] = 0;
#pragma unroll
    for (int slot = 0; slot < kSlots; ++slot) {
      const float4 part = parts[slot][j / 4];
      sum[j] += j % 4 == 0   ? part.x
                : j % 4 == 1 ? part.y
                : j % 4 == 2 ? part.z
                             : part.w;
    }
  }
}

/// One element.
template <int kSlots, int kLength>
__device__ __forceinline__ float sumSlots(const float *slots, int count,
                                          int index) {
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

} // namespace mega
