// SPDX-License-Identifier: Apache-2.0
/// \file
/// Adds the partial sums that a split reduction left, in slot order.

namespace mega {

/// Elements [index, index + 8) of slots of kLength floats, of which `count` are
/// full, as they lie in memory; the other slots hold zeros. index and kLength
/// are multiples of 8. All slots are asked for before the first is used.
template <int kSlots> struct SlotPieces {
  float4 parts[kSlots][2];

  template <int kLength>
  __device__ __forceinline__ void load(const float *slots, int count,
                                       int index) {
#pragma unroll
    for (int slot = 0; slot < kSlots; ++slot)
#pragma unroll
      for (int half = 0; half < 2; ++half)
        parts[slot][half] =
            slot < count
                ? loadSharedFloat4(slots + slot * kLength + index + half * 4)
                : float4{0, 0, 0, 0};
  }

  __device__ __forceinline__ void add(float (&sum)[8]) const {
#pragma unroll
    for (int j = 0; j < 8; ++j) {
      // From the first slot, not from zero: the compiler would add that one at
      // once, and wait for its load.
#pragma unroll
      for (int slot = 0; slot < kSlots; ++slot) {
        const float4 four = parts[slot][j / 4];
        const float part = j % 4 == 0   ? four.x
                           : j % 4 == 1 ? four.y
                           : j % 4 == 2 ? four.z
                                        : four.w;
        sum[j] = slot == 0 ? part : sum[j] + part;
      }
    }
  }
};

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
