// SPDX-License-Identifier: Apache-2.0
/// \file
/// Host tensors as the reference interpreter takes and gives them.

#ifndef MEGA_REFERENCE_TENSOR_H
#define MEGA_REFERENCE_TENSOR_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringRef.h"

#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

namespace mega::reference {

/// Element types of checkpoint tensors and states.
enum class ElementType { U8, I32, BF16, F32 };

/// Lower-case name: "u8", "i32", "bf16", "f32".
llvm::StringRef elementName(ElementType type);

/// Bytes of one element.
int64_t elementBytes(ElementType type);

/// A shape.
using Shape = llvm::SmallVector<int64_t, 4>;

/// Number of elements of a static shape.
int64_t numElements(llvm::ArrayRef<int64_t> shape);

/// A type for messages: "32x128xbf16".
std::string typeText(llvm::ArrayRef<int64_t> shape, ElementType type);

/// Row-major bytes that someone else owns, at any alignment.
struct TensorView {
  ElementType type = ElementType::F32;
  Shape shape;
  const void *data = nullptr;
};

/// What a checkpoint must provide under a name.
struct TensorSpec {
  std::string name;
  ElementType type = ElementType::F32;
  Shape shape;
};

/// A state's value: f32 numbers, each already rounded to `type`.
struct StateValue {
  ElementType type = ElementType::F32;
  /// The leading dimension of a cache is its number of rows.
  Shape shape;
  std::vector<float> values;
};

/// Bits of the nearest bf16, ties to even; a NaN stays one.
inline uint16_t bf16Bits(float value) {
  uint32_t bits;
  std::memcpy(&bits, &value, sizeof(bits));
  uint32_t rounded = (bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16;
  uint32_t quiet = (bits >> 16) | 0x40u;
  bool isNan = (bits & 0x7fffffffu) > 0x7f800000u;
  return static_cast<uint16_t>(isNan ? quiet : rounded);
}

/// The value of bf16 bits.
inline float bf16Value(uint16_t half) {
  uint32_t bits = static_cast<uint32_t>(half) << 16;
  float value;
  std::memcpy(&value, &bits, sizeof(value));
  return value;
}

/// Rounds to bf16, nearest even.
inline float roundToBf16(float value) { return bf16Value(bf16Bits(value)); }

/// Widens elements [begin, begin + count) of a bf16 or f32 view.
void widen(const TensorView &view, int64_t begin, int64_t count, float *out);

/// The bytes of `values` as elements of `type` (bf16 or f32).
std::vector<uint8_t> narrow(llvm::ArrayRef<float> values, ElementType type);

} // namespace mega::reference

#endif // MEGA_REFERENCE_TENSOR_H
