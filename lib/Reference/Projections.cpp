// SPDX-License-Identifier: Apache-2.0
/// \file
/// Norms and projections.

#include "Machine.h"
#include "Parallel.h"

#include <cmath>

using namespace mlir;
using namespace mega;
using namespace mega::reference;

LogicalResult mega::reference::evaluate(RmsNormOp op, Machine &machine) {
  ArrayRef<float> x = machine.get(op.getX());
  std::vector<float> weight = machine.readDense(op.getWeight());
  auto eps = static_cast<float>(op.getEps().convertToDouble());
  int64_t size = weight.size(), rows = x.size() / size;
  std::vector<float> out(x.size());
  for (int64_t row = 0; row < rows; ++row) {
    const float *from = x.data() + row * size;
    float mean = dot(from, from, size) / static_cast<float>(size);
    float factor = 1.0f / std::sqrt(mean + eps);
    for (int64_t i = 0; i < size; ++i) {
      float gain = op.getUnitOffset() ? 1.0f + weight[i] : weight[i];
      out[row * size + i] = from[i] * factor * gain;
    }
  }
  machine.set(op.getResult(), std::move(out));
  return success();
}

/// Weight rows x inputs, as checkpoints store plain tensors.
static void multiplyDense(const TensorView &weight, ArrayRef<float> x,
                          unsigned threads, MutableArrayRef<float> y) {
  parallelFor(y.size(), threads, [&](int64_t n) {
    std::vector<float> row(x.size());
    widen(weight, n * x.size(), x.size(), row.data());
    y[n] = dot(x.data(), row.data(), x.size());
  });
}

LogicalResult mega::reference::evaluate(LinearOp op, Machine &machine) {
  ArrayRef<float> x = machine.get(op.getX());
  std::vector<float> y(tensorTypeOf(op.getResult()).getNumElements());
  auto dense = machine.dense.find(op.getWeight());
  if (dense != machine.dense.end()) {
    multiplyDense(dense->second, x, machine.threads, y);
  } else {
    const QuantMatrix &matrix =
        machine.quantised.find(op.getWeight())->second.front();
    int64_t outputs = y.size();
    parallelFor(llvm::divideCeil(outputs, kColumns), machine.threads,
                [&](int64_t block) {
                  int64_t column = block * kColumns;
                  multiply(matrix, x.data(), column,
                           std::min(kColumns, outputs - column), &y[column]);
                });
  }
  machine.set(op.getResult(), std::move(y));
  return success();
}
