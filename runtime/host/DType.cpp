// SPDX-License-Identifier: Apache-2.0

#include "mega/runtime/DType.h"

#include <fmt/format.h>

using namespace megalith;

namespace {

struct DTypeRow {
  const char *name;
  unsigned bits;
};

constexpr DTypeRow rows[] = {
#define MEGALITH_DTYPE_ROW(name, text, bits) {text, bits},
    MEGALITH_DTYPES(MEGALITH_DTYPE_ROW)
#undef MEGALITH_DTYPE_ROW
};

} // namespace

unsigned megalith::dtypeBits(DType dtype) { return rows[size_t(dtype)].bits; }

const char *megalith::dtypeName(DType dtype) {
  return rows[size_t(dtype)].name;
}

std::optional<DType> megalith::parseSafetensorsDType(std::string_view name) {
  for (size_t i = 0; i < std::size(rows); ++i)
    if (name == rows[i].name)
      return DType(i);
  return std::nullopt;
}

std::optional<DType> megalith::parseManifestDType(std::string_view name) {
  if (name == "u8")
    return DType::U8;
  if (name == "i32")
    return DType::I32;
  if (name == "bf16")
    return DType::BF16;
  if (name == "f32")
    return DType::F32;
  return std::nullopt;
}

std::optional<uint64_t>
megalith::tensorBytes(DType dtype, const std::vector<int64_t> &shape) {
  // Signed, so that results also fit int64_t and pointer differences.
  int64_t bits = dtypeBits(dtype);
  for (int64_t dim : shape)
    if (dim < 0 || __builtin_mul_overflow(bits, dim, &bits))
      return std::nullopt;
  if (bits % 8 != 0)
    return std::nullopt;
  return uint64_t(bits) / 8;
}

std::string megalith::shapeText(const std::vector<int64_t> &shape) {
  return shape.empty() ? "scalar" : fmt::format("{}", fmt::join(shape, "x"));
}
