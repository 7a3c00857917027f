// SPDX-License-Identifier: Apache-2.0
/// \file
/// bf16 conversion and packed arithmetic. A packed pair is a u32 whose low half
/// is the element with the lower index.

namespace mega {

using u8 = unsigned char;
using u16 = unsigned short;
using u32 = unsigned int;
using u64 = unsigned long long;

/// Widens one bf16, exactly.
__device__ __forceinline__ float bf16ToFloat(u16 bits) {
  return __uint_as_float(u32(bits) << 16);
}

/// Two numbers rounded to bf16, nearest even, `low` in the low half (PTX ISA,
/// cvt.rn.bf16x2.f32).
__device__ __forceinline__ u32 packBf16x2(float low, float high) {
  u32 pair;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(high), "f"(low));
  return pair;
}

/// Rounds one to bf16. The conversion of a pair runs at the rate of an
/// addition, that of one number at a small part of it.
__device__ __forceinline__ u16 floatToBf16(float value) {
  return u16(packBf16x2(value, 0));
}

/// The nearest value that a bf16 holds: the upper half of a float is one.
__device__ __forceinline__ float roundBf16(float value) {
  return __uint_as_float(packBf16x2(0, value));
}

/// a - b on both halves, each rounded once. sm_80 has only the fused form.
__device__ __forceinline__ u32 subBf16x2(u32 a, u32 b) {
  u32 result;
#if __CUDA_ARCH__ >= 900
  asm("sub.rn.bf16x2 %0, %1, %2;" : "=r"(result) : "r"(a), "r"(b));
#else
  const u32 minusOne = 0xBF80BF80u;
  asm("fma.rn.bf16x2 %0, %1, %2, %3;"
      : "=r"(result)
      : "r"(b), "r"(minusOne), "r"(a));
#endif
  return result;
}

/// a * b on both halves, each rounded once.
__device__ __forceinline__ u32 mulBf16x2(u32 a, u32 b) {
  u32 result;
#if __CUDA_ARCH__ >= 900
  asm("mul.rn.bf16x2 %0, %1, %2;" : "=r"(result) : "r"(a), "r"(b));
#else
  const u32 minusZero = 0x80008000u;
  asm("fma.rn.bf16x2 %0, %1, %2, %3;"
      : "=r"(result)
      : "r"(a), "r"(b), "r"(minusZero));
#endif
  return result;
}

/// One half of a pair in both halves.
__device__ __forceinline__ u32 broadcastLow(u32 pair) {
  return __byte_perm(pair, 0, 0x1010);
}
__device__ __forceinline__ u32 broadcastHigh(u32 pair) {
  return __byte_perm(pair, 0, 0x3232);
}

} // namespace mega
