// SPDX-License-Identifier: Apache-2.0
/// \file
/// Host tensors: names, sizes and conversions.

#include "mega/Reference/Tensor.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/ErrorHandling.h"

using namespace mega::reference;

llvm::StringRef mega::reference::elementName(ElementType type) {
  switch (type) {
  case ElementType::U8:
    return "u8";
  case ElementType::I32:
    return "i32";
  case ElementType::BF16:
    return "bf16";
  case ElementType::F32:
    return "f32";
  }
  llvm_unreachable("unknown element type");
}

int64_t mega::reference::elementBytes(ElementType type) {
  switch (type) {
  case ElementType::U8:
    return 1;
  case ElementType::BF16:
    return 2;
  case ElementType::I32:
  case ElementType::F32:
    return 4;
  }
  llvm_unreachable("unknown element type");
}

int64_t mega::reference::numElements(llvm::ArrayRef<int64_t> shape) {
  int64_t count = 1;
  for (int64_t dim : shape)
    count *= dim;
  return count;
}

std::string mega::reference::typeText(llvm::ArrayRef<int64_t> shape,
                                      ElementType type) {
  std::string text;
  for (int64_t dim : shape)
    text += std::to_string(dim) + "x";
  return text + elementName(type).str();
}

void mega::reference::widen(const TensorView &view, int64_t begin,
                            int64_t count, float *out) {
  auto *bytes =
      static_cast<const uint8_t *>(view.data) + begin * elementBytes(view.type);
  if (view.type == ElementType::F32) {
    std::memcpy(out, bytes, count * sizeof(float));
    return;
  }
  for (int64_t i = 0; i < count; ++i) {
    uint16_t half;
    std::memcpy(&half, bytes + 2 * i, sizeof(half));
    out[i] = bf16Value(half);
  }
}

std::vector<uint8_t> mega::reference::narrow(llvm::ArrayRef<float> values,
                                             ElementType type) {
  std::vector<uint8_t> bytes(values.size() * elementBytes(type));
  if (type == ElementType::F32) {
    std::memcpy(bytes.data(), values.data(), bytes.size());
    return bytes;
  }
  for (auto [i, value] : llvm::enumerate(values)) {
    uint16_t half = bf16Bits(value);
    std::memcpy(bytes.data() + 2 * i, &half, sizeof(half));
  }
  return bytes;
}
