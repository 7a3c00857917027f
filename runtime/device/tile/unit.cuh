// SPDX-License-Identifier: Apache-2.0
/// \file
/// One packed weight unit: 16 outputs x 128 inputs of int4 codes with their
/// scales and zeros, in mma fragment order (docs/bundle-format.md).

namespace mega {

/// What a stage without such a thing hands on.
struct Nothing {};

/// Weights come out of a unit times 2^-20 (docs/bundle-format.md says why); the
/// sums over them are multiplied by this, which is exact.
constexpr float kUnitScale = 1048576.0f;

/// A lane's part of a unit, in registers. kSets groups lie along the inputs.
template <int kSets> struct Unit {
  static constexpr int kBytes = 1024 + 64 * kSets;

  uint4 low, high;
  uint2 scales[kSets]; ///< .x: scale and zero of row g; .y: of row g + 8

  __device__ __forceinline__ void load(const u8 *unit) {
    const int lane = threadIdx.x % 32;
    low = loadConstant16(unit + 16 * lane);
    high = loadConstant16(unit + 512 + 16 * lane);
#pragma unroll
    for (int set = 0; set < kSets; ++set)
      scales[set] = loadConstant8(unit + 1024 + 64 * set + 8 * (lane / 4));
  }

  /// From shared memory.
  __device__ __forceinline__ void loadShared(const u8 *unit) {
    const int lane = threadIdx.x % 32;
    low = *reinterpret_cast<const uint4 *>(unit + 16 * lane);
    high = *reinterpret_cast<const uint4 *>(unit + 512 + 16 * lane);
#pragma unroll
    for (int set = 0; set < kSets; ++set)
      scales[set] = *reinterpret_cast<const uint2 *>(unit + 1024 + 64 * set +
                                                     8 * (lane / 4));
  }

  __device__ __forceinline__ u32 word(int m) const {
    const uint4 &half = m < 4 ? low : high;
    const int i = m % 4;
    return i == 0 ? half.x : i == 1 ? half.y : i == 2 ? half.z : half.w;
  }

  /// The A operand of mma m, dequantised: each weight is 2^-20 times the bf16
  /// number bf16((code - zero) * scale), with the rounding of the description.
  /// A code in bits 0..3 or 4..7 of a bf16 is a number as it lies.
  __device__ __forceinline__ void operand(int m, u32 (&a)[4]) const {
    const uint2 s = scales[m / 2 * kSets / 4];
    const u32 q = word(m), next = q >> 8;
    const u32 upperScale = broadcastLow(s.x), upperZero = broadcastHigh(s.x);
    const u32 lowerScale = broadcastLow(s.y), lowerZero = broadcastHigh(s.y);
    const u32 upper = 0x000F000Fu, lower = 0x00F000F0u;
    a[0] = mulBf16x2(subBf16x2(q & upper, upperZero), upperScale);
    a[1] = mulBf16x2(subBf16x2(q & lower, lowerZero), lowerScale);
    a[2] = mulBf16x2(subBf16x2(next & upper, upperZero), upperScale);
    a[3] = mulBf16x2(subBf16x2(next & lower, lowerZero), lowerScale);
  }

  /// Rows g and g + 8 of unit * x; `fragments` are x's for the unit's inputs:
  /// lanes with lane % 4 == 0 hold the sum over the first two levels, the next
  /// lane that of the third. Tensor cores truncate what they add, so every mma
  /// starts from zero and a tree in f32 adds the eight.
  template <int kLevels>
  __device__ __forceinline__ float2 multiply(const uint4 *fragments) const {
    float upper[4], lower[4], upperNext[4], lowerNext[4];
#pragma unroll
    for (int j = 0; j < 4; ++j) {
      const uint4 b = fragments[4 * j];
      float even[4] = {}, odd[4] = {};
      u32 a[4];
      operand(2 * j, a);
      MmaM16N8K16Bf16::run(even, a[0], a[1], a[2], a[3], b.x, b.y);
      operand(2 * j + 1, a);
      MmaM16N8K16Bf16::run(odd, a[0], a[1], a[2], a[3], b.z, b.w);
      upper[j] = even[0] + odd[0];
      lower[j] = even[2] + odd[2];
      upperNext[j] = even[1] + odd[1];
      lowerNext[j] = even[3] + odd[3];
    }
    float2 rows = {(upper[0] + upper[1]) + (upper[2] + upper[3]),
                   (lower[0] + lower[1]) + (lower[2] + lower[3])};
    // Column 1, the second level, is the second element of the first lane.
    if (kLevels > 1 && threadIdx.x % 4 == 0) {
      rows.x += (upperNext[0] + upperNext[1]) + (upperNext[2] + upperNext[3]);
      rows.y += (lowerNext[0] + lowerNext[1]) + (lowerNext[2] + lowerNext[3]);
    }
    return rows;
  }
};

} // namespace mega
