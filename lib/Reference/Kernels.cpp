// SPDX-License-Identifier: Apache-2.0
/// \file
/// The few loops that take time.

#include "Kernels.h"

#include <algorithm>

using namespace mega::reference;

// Sanitizers instrument the resolvers of function clones, which then run
// before the sanitizer's own start-up.
#if defined(__x86_64__) && defined(__GNUC__) &&                                \
    !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define MEGA_EVERY_WIDTH                                                       \
  __attribute__((target_clones("avx512f", "avx2", "default")))
#else
#define MEGA_EVERY_WIDTH
#endif

/// One dequantised weight.
static inline __attribute__((always_inline)) float
weightValue(unsigned code, float zero, float scale) {
  return roundToBf16((static_cast<float>(static_cast<int>(code)) - zero) *
                     scale);
}

//===----------------------------------------------------------------------===//
// Quantised matrix times vector
//===----------------------------------------------------------------------===//

/// Inputs that are handled at once; it divides every group.
static constexpr int64_t kInputs = 16;

/// Adds the products of `count` columns over kInputs inputs to `y`. `codes` is
/// the first input's row at the first column. Sums are f64: every order in
/// which an f32 implementation may add lies around this one, so a value that
/// is rounded to bf16 next is only disputed where it is a tie.
MEGA_EVERY_WIDTH
static void addInputs(const uint8_t *codes, int64_t stride,
                      const float *__restrict x, const float *__restrict scale,
                      const float *__restrict zero, int64_t count,
                      double *__restrict y) {
  for (int64_t k = 0; k < kInputs; k += 2) {
    const uint8_t *row = codes + k / 2 * stride;
    double even = x[k], odd = x[k + 1];
    for (int64_t n = 0; n < count; ++n) {
      unsigned pair = row[n];
      y[n] += even * double(weightValue(pair & 15u, zero[n], scale[n])) +
              odd * double(weightValue(pair >> 4, zero[n], scale[n]));
    }
  }
}

void mega::reference::multiply(const QuantMatrix &weight, const float *x,
                               int64_t column, int64_t count, float *y) {
  float scale[kColumns], zero[kColumns];
  double total[kColumns] = {};
  for (int64_t begin = 0; begin < weight.inputs; begin += weight.group) {
    int64_t first = begin / weight.group * weight.outputs + column;
    widen(weight.scales, first, count, scale);
    widen(weight.zeros, first, count, zero);
    for (int64_t k = begin; k < begin + weight.group; k += kInputs)
      addInputs(weight.codes + k / 2 * weight.outputs + column, weight.outputs,
                x + k, scale, zero, count, total);
  }
  for (int64_t n = 0; n < count; ++n)
    y[n] = static_cast<float>(total[n]);
}

//===----------------------------------------------------------------------===//
// Panels
//===----------------------------------------------------------------------===//

void mega::reference::dequantisePanel(const QuantMatrix &weight, int64_t column,
                                      int64_t count, float *panel) {
  float scale[kPanel], zero[kPanel];
  std::fill(panel, panel + weight.inputs * kPanel, 0.0f);
  for (int64_t k = 0; k < weight.inputs; ++k) {
    if (k % weight.group == 0) {
      int64_t first = k / weight.group * weight.outputs + column;
      widen(weight.scales, first, count, scale);
      widen(weight.zeros, first, count, zero);
    }
    const uint8_t *row = weight.codes + k / 2 * weight.outputs + column;
    for (int64_t n = 0; n < count; ++n)
      panel[k * kPanel + n] =
          weightValue(k % 2 ? row[n] >> 4 : row[n] & 15u, zero[n], scale[n]);
  }
}

/// Sixteen f32 lanes, whatever registers hold them.
typedef float Lanes __attribute__((vector_size(64)));
/// The same in memory, at any alignment. (`auto` would drop the alignment.)
typedef float LanesInMemory
    __attribute__((vector_size(64), aligned(4), may_alias));

/// Rows that addRows takes at once.
static constexpr int64_t kRows = 4;

/// Adds `sum_k a[r][k] panel[k][n]` to `out[r][n]` for kRows rows.
MEGA_EVERY_WIDTH
static void addRows(const float *a, int64_t lda, int64_t depth,
                    const float *panel, float *out, int64_t stride) {
  constexpr int64_t kWide = kPanel / 16;
  Lanes partial[kRows][kWide] = {};
  for (int64_t k = 0; k < depth; ++k) {
    const LanesInMemory *b = (const LanesInMemory *)(panel + k * kPanel);
    for (int64_t r = 0; r < kRows; ++r)
      for (int64_t n = 0; n < kWide; ++n)
        partial[r][n] += a[r * lda + k] * b[n];
  }
  for (int64_t r = 0; r < kRows; ++r) {
    LanesInMemory *row = (LanesInMemory *)(out + r * stride);
    for (int64_t n = 0; n < kWide; ++n)
      row[n] += partial[r][n];
  }
}

/// As addRows, for one row.
static void addRow(const float *a, int64_t depth, const float *panel,
                   float *out) {
  float partial[kPanel] = {};
  for (int64_t k = 0; k < depth; ++k)
    for (int64_t n = 0; n < kPanel; ++n)
      partial[n] += a[k] * panel[k * kPanel + n];
  for (int64_t n = 0; n < kPanel; ++n)
    out[n] += partial[n];
}

void mega::reference::multiplyPanel(const float *a, int64_t rows, int64_t depth,
                                    const float *panel, float *out,
                                    int64_t stride) {
  for (int64_t r = 0; r < rows; ++r)
    std::fill(out + r * stride, out + r * stride + kPanel, 0.0f);
  for (int64_t k = 0; k < depth; k += kDepth) {
    int64_t block = std::min(kDepth, depth - k);
    const float *slab = panel + k * kPanel;
    int64_t r = 0;
    for (; r + kRows <= rows; r += kRows)
      addRows(a + r * depth + k, depth, block, slab, out + r * stride, stride);
    for (; r < rows; ++r)
      addRow(a + r * depth + k, block, slab, out + r * stride);
  }
}

//===----------------------------------------------------------------------===//
// Sums
//===----------------------------------------------------------------------===//

/// Interleaved partial sums.
static constexpr int64_t kLanes = 16;

/// Adds neighbours until one number is left.
static float fold(double (&lanes)[kLanes]) {
  for (int64_t width = kLanes / 2; width; width /= 2)
    for (int64_t i = 0; i < width; ++i)
      lanes[i] += lanes[i + width];
  return static_cast<float>(lanes[0]);
}

float mega::reference::dot(const float *a, const float *b, int64_t count) {
  double lanes[kLanes] = {};
  int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes)
    for (int64_t lane = 0; lane < kLanes; ++lane)
      lanes[lane] += double(a[i + lane]) * double(b[i + lane]);
  for (int64_t lane = 0; i + lane < count; ++lane)
    lanes[lane] += double(a[i + lane]) * double(b[i + lane]);
  return fold(lanes);
}

float mega::reference::sum(const float *a, int64_t count) {
  double lanes[kLanes] = {};
  for (int64_t i = 0; i < count; ++i)
    lanes[i % kLanes] += a[i];
  return fold(lanes);
}

void mega::reference::addScaled(float a, const float *x, int64_t count,
                                float *y) {
  for (int64_t i = 0; i < count; ++i)
    y[i] += a * x[i];
}
