// SPDX-License-Identifier: Apache-2.0
/// \file
/// The few loops that take time. Plain C++, compiled once per vector width;
/// each output is one fixed sequence of f32 operations, and contraction into
/// fused multiply-adds is off, so that every variant gives the same bits. Long
/// sums are blocked, which keeps their rounding errors small.

#ifndef MEGA_LIB_REFERENCE_KERNELS_H
#define MEGA_LIB_REFERENCE_KERNELS_H

#include "mega/Reference/Tensor.h"

namespace mega::reference {

/// One matrix of a quantised weight: inputs x outputs.
struct QuantMatrix {
  int64_t inputs = 0;
  int64_t outputs = 0;
  int64_t group = 0;
  /// u8 (inputs / 2, outputs); the low nibble is the even input.
  const uint8_t *codes = nullptr;
  /// bf16 (inputs / group, outputs).
  TensorView scales;
  TensorView zeros;
};

/// Most outputs that one call of multiply computes.
constexpr int64_t kColumns = 256;

/// `y[n] = sum_k x[k] W[k][column + n]` for n < count <= kColumns: partial
/// sums of 16 inputs, their sum per group, then the sum of the groups.
void multiply(const QuantMatrix &weight, const float *x, int64_t column,
              int64_t count, float *y);

/// Columns of a panel.
constexpr int64_t kPanel = 32;

/// Writes W[k][column + n] to `panel[k * kPanel + n]` for n < count; columns
/// from count to kPanel are zero.
void dequantisePanel(const QuantMatrix &weight, int64_t column, int64_t count,
                     float *panel);

/// Depth of one partial sum of multiplyPanel.
constexpr int64_t kDepth = 32;

/// `out[r][n] = sum_k a[r][k] panel[k][n]` for n < kPanel, with row strides
/// `depth` of a and `stride` of out; a partial sum per kDepth inputs.
void multiplyPanel(const float *a, int64_t rows, int64_t depth,
                   const float *panel, float *out, int64_t stride);

/// `sum_i a[i] b[i]`, in 16 interleaved partial sums per 256 elements.
float dot(const float *a, const float *b, int64_t count);

/// `sum_i a[i]`, likewise.
float sum(const float *a, int64_t count);

/// `y[i] += a * x[i]`.
void addScaled(float a, const float *x, int64_t count, float *y);

} // namespace mega::reference

#endif // MEGA_LIB_REFERENCE_KERNELS_H
