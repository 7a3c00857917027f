// SPDX-License-Identifier: Apache-2.0
//
// Element types: all that safetensors names, of which a bundle uses four.

#ifndef MEGA_RUNTIME_DTYPE_H
#define MEGA_RUNTIME_DTYPE_H

#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace megalith {

/// X(enumerator, safetensors name, bits an element). The first four are the
/// bundle's, in the order of `megalith_dtype`.
#define MEGALITH_DTYPES(X)                                                     \
  X(U8, "U8", 8)                                                               \
  X(I32, "I32", 32)                                                            \
  X(BF16, "BF16", 16)                                                          \
  X(F32, "F32", 32)                                                            \
  X(Bool, "BOOL", 8)                                                           \
  X(I8, "I8", 8)                                                               \
  X(I16, "I16", 16)                                                            \
  X(U16, "U16", 16)                                                            \
  X(F16, "F16", 16)                                                            \
  X(U32, "U32", 32)                                                            \
  X(I64, "I64", 64)                                                            \
  X(U64, "U64", 64)                                                            \
  X(F64, "F64", 64)                                                            \
  X(C64, "C64", 64)                                                            \
  X(F8E4M3, "F8_E4M3", 8)                                                      \
  X(F8E5M2, "F8_E5M2", 8)                                                      \
  X(F8E8M0, "F8_E8M0", 8)                                                      \
  X(F8E4M3FNUZ, "F8_E4M3FNUZ", 8)                                              \
  X(F8E5M2FNUZ, "F8_E5M2FNUZ", 8)                                              \
  X(F6E2M3, "F6_E2M3", 6)                                                      \
  X(F6E3M2, "F6_E3M2", 6)                                                      \
  X(F4, "F4", 4)

/// The type of a tensor's elements.
enum class DType : uint8_t {
#define MEGALITH_DTYPE_ENUMERATOR(name, text, bits) name,
  MEGALITH_DTYPES(MEGALITH_DTYPE_ENUMERATOR)
#undef MEGALITH_DTYPE_ENUMERATOR
};

/// Bits an element takes; below 8 for packed types.
unsigned dtypeBits(DType dtype);

/// The safetensors name, such as "BF16".
const char *dtypeName(DType dtype);

/// The inverse of dtypeName; nothing for an unknown name.
std::optional<DType> parseSafetensorsDType(std::string_view name);

/// A bundle's dtype by its manifest name: "u8", "i32", "bf16" or "f32".
std::optional<DType> parseManifestDType(std::string_view name);

/// Bytes of a dense tensor. Nothing if a dimension is negative, the size
/// passes 2^60, or sub-byte elements do not fill whole bytes.
std::optional<uint64_t> tensorBytes(DType dtype,
                                    const std::vector<int64_t> &shape);

/// A shape for messages: "256x512"; "scalar" for rank 0.
std::string shapeText(const std::vector<int64_t> &shape);

/// Rounds to bf16, nearest-even; a NaN stays one.
inline uint16_t toBf16(float value) {
  uint32_t bits;
  std::memcpy(&bits, &value, sizeof(bits));
  if ((bits & 0x7fffffffu) > 0x7f800000u)
    return uint16_t((bits >> 16) | 0x40u);
  return uint16_t((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16);
}

/// The value of bf16 bits; exact.
inline float fromBf16(uint16_t half) {
  uint32_t bits = uint32_t(half) << 16;
  float value;
  std::memcpy(&value, &bits, sizeof(value));
  return value;
}

} // namespace megalith

#endif
