// SPDX-License-Identifier: Apache-2.0
/// \file
/// Activation vectors: eight elements at a time in registers, whole in shared
/// memory, as tensor cores want them.
///
/// At batch 1 only one of the eight columns of an mma is needed for a bf16
/// vector. An f32 vector takes three: high + middle + low bf16 hold all 24 bits
/// of its significand, so nothing is rounded.

namespace mega {

/// Eight bf16 numbers from four words.
__device__ __forceinline__ void unpack(uint4 packed, float (&v)[8]) {
  const u32 words[4] = {packed.x, packed.y, packed.z, packed.w};
#pragma unroll
  for (int j = 0; j < 4; ++j) {
    v[2 * j] = __uint_as_float(words[j] << 16);
    v[2 * j + 1] = __uint_as_float(words[j] & 0xffff0000u);
  }
}

/// Eight numbers, each rounded to bf16.
__device__ __forceinline__ uint4 pack(const float (&v)[8]) {
  return {packBf16x2(v[0], v[1]), packBf16x2(v[2], v[3]),
          packBf16x2(v[4], v[5]), packBf16x2(v[6], v[7])};
}

/// Eight elements that other CTAs wrote.
__device__ __forceinline__ void loadShared8(const u16 *address, float (&v)[8]) {
  unpack(loadShared16(address), v);
}
__device__ __forceinline__ void loadShared8(const float *address,
                                            float (&v)[8]) {
  const float4 low = loadSharedFloat4(address);
  const float4 high = loadSharedFloat4(address + 4);
  v[0] = low.x, v[1] = low.y, v[2] = low.z, v[3] = low.w;
  v[4] = high.x, v[5] = high.y, v[6] = high.z, v[7] = high.w;
}

/// Stores eight elements, each rounded to bf16; `address` is 16-byte aligned.
__device__ __forceinline__ void store8(u16 *address, const float (&v)[8]) {
  const uint4 packed = pack(v);
  *reinterpret_cast<uint4 *>(address) = packed;
}

/// From one unit's fragments to the next one's, in elements of 16 bytes.
constexpr int kStepFragments = 128 * 2 / 16;

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

  /// Elements [index, index + 8); index is a multiple of 8.
  __device__ __forceinline__ void set8(int index, const float (&v)[8]) const {
    float rest[8], part[8];
#pragma unroll
    for (int j = 0; j < 8; ++j)
      rest[j] = v[j];
#pragma unroll
    for (int level = 0; level < kLevels; ++level) {
      const uint4 packed = pack(rest);
      *reinterpret_cast<uint4 *>(planes + level * kLength + index) = packed;
      unpack(packed, part);
#pragma unroll
      for (int j = 0; j < 8; ++j)
        rest[j] -= part[j];
    }
  }

  /// The same from eight bf16 numbers as they lie in memory.
  __device__ __forceinline__ void set8(int index, uint4 packed) const {
    static_assert(kLevels == 1, "one plane holds bf16 numbers");
    *reinterpret_cast<uint4 *>(planes + index) = packed;
  }

  __device__ __forceinline__ void get8(int index, float (&v)[8]) const {
#pragma unroll
    for (int level = kLevels - 1; level >= 0; --level) {
      float part[8];
      unpack(*reinterpret_cast<const uint4 *>(planes + level * kLength + index),
             part);
#pragma unroll
      for (int j = 0; j < 8; ++j)
        v[j] = level == kLevels - 1 ? part[j] : v[j] + part[j];
    }
  }

  /// This lane's part of the B operands of a unit's eight mma: element 4j has
  /// those of mma 2j (x, y) and 2j + 1 (z, w), over inputs [0, 128); those of
  /// the next 128 lie kStepFragments further. Column n of an operand is level
  /// n; nobody reads the columns past the levels, which repeat the first.
  __device__ __forceinline__ const uint4 *fragments() const {
    const int lane = threadIdx.x % 32;
    const int level = lane / 4 < kLevels ? lane / 4 : 0;
    return reinterpret_cast<const uint4 *>(planes + level * kLength +
                                           (lane % 4) * 8);
  }
};

} // namespace mega
