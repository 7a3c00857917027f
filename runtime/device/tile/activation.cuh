// SPDX-License-Identifier: Apache-2.0
/// \file
/// Activation vectors in shared memory, as tensor cores want them.
///
/// At batch 1 only one of the eight columns of an mma is needed for a bf16
/// vector. An f32 vector takes three: high + middle + low bf16 hold all 24 bits
/// of its significand, so nothing is rounded.

namespace mega {

/// kLevels planes of kLength bf16 (kLength a multiple of 128, zero-padded).
template <int kLevels, int kLength> struct Activation {
  u16 *planes;

  static constexpr int kBytes = kLevels * kLength * 2;

  __device__ __forceinline__ void set(int index, float value) const {
#pragma unroll
    for (int level = 0; level < kLevels; ++level) {
      const u16 part = floatToBf16(value);
      planes[level * kLength + index] = part;
      value -= bf16ToFloat(part);
    }
  }

  __device__ __forceinline__ float get(int index) const {
    float value = 0;
#pragma unroll
    for (int level = kLevels - 1; level >= 0; --level)
      value += bf16ToFloat(planes[level * kLength + index]);
    return value;
  }

  /// B operands of the eight mma of inputs [128 step, 128 step + 128): b[j]
  /// serves mma 2j (x, y) and 2j + 1 (z, w). Column n of the operand is level
  /// n; nobody reads the columns past the levels, which repeat the first.
  __device__ __forceinline__ void fragments(int step, uint4 (&b)[4]) const {
    const int lane = threadIdx.x % 32;
    const int level = lane / 4 < kLevels ? lane / 4 : 0;
    const uint4 *row = reinterpret_cast<const uint4 *>(
        planes + level * kLength + step * 128 + (lane % 4) * 8);
#pragma unroll
    for (int j = 0; j < 4; ++j)
      b[j] = row[j * 4];
  }
};

} // namespace mega
