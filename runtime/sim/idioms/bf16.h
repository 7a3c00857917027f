// SPDX-License-Identifier: Apache-2.0
/// \file
/// Twin of runtime/device/ptx/bf16.cuh.

namespace mega {

using u8 = unsigned char;
using u16 = unsigned short;
using u32 = unsigned int;
using u64 = unsigned long long;

inline float bf16ToFloat(u16 bits) { return __uint_as_float(u32(bits) << 16); }

/// Nearest even; NaN becomes the instruction's canonical 0x7fff.
inline u16 floatToBf16(float value) {
  const u32 bits = __float_as_uint(value);
  if ((bits & 0x7fffffffu) > 0x7f800000u)
    return 0x7fff;
  return u16((bits + 0x7fffu + ((bits >> 16) & 1)) >> 16);
}

inline u32 packBf16x2(float low, float high) {
  return u32(floatToBf16(high)) << 16 | floatToBf16(low);
}

inline float roundBf16(float value) { return bf16ToFloat(floatToBf16(value)); }

namespace sim {
template <typename Op> inline u32 onHalves(u32 a, u32 b, const Op &op) {
  const u32 low = floatToBf16(op(bf16ToFloat(u16(a)), bf16ToFloat(u16(b))));
  const u32 high =
      floatToBf16(op(bf16ToFloat(u16(a >> 16)), bf16ToFloat(u16(b >> 16))));
  return high << 16 | low;
}
} // namespace sim

// An f32 has more than twice the bits of a bf16, so rounding to it first changes
// nothing. Of subnormal results, differences are exact, and products that do not
// fit an f32 are below half of the least bf16.
inline u32 subBf16x2(u32 a, u32 b) {
  return sim::onHalves(a, b, [](float x, float y) { return x - y; });
}
inline u32 mulBf16x2(u32 a, u32 b) {
  return sim::onHalves(a, b, [](float x, float y) { return x * y; });
}

inline u32 broadcastLow(u32 pair) { return (pair & 0xffffu) * 0x10001u; }
inline u32 broadcastHigh(u32 pair) { return (pair >> 16) * 0x10001u; }

} // namespace mega
