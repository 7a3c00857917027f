// SPDX-License-Identifier: Apache-2.0
/// \file
/// Elementwise work and views.

#include "Machine.h"

using namespace mlir;
using namespace mega;
using namespace mega::reference;

LogicalResult mega::reference::evaluate(MapOp op, Machine &machine) {
  SmallVector<const float *> inputs;
  for (Value input : op.getInputs())
    inputs.push_back(machine.get(input).data());
  std::vector<float> out(tensorTypeOf(op.getResult()).getNumElements());
  machine.programs.find(op)->second.run(inputs, out.size(), out.data());
  machine.set(op.getResult(), std::move(out));
  return success();
}

LogicalResult mega::reference::evaluate(ReshapeOp op, Machine &machine) {
  machine.set(op.getResult(), machine.get(op.getX()).vec());
  return success();
}

LogicalResult mega::reference::evaluate(SliceOp op, Machine &machine) {
  ArrayRef<float> x = machine.get(op.getX());
  int64_t from = tensorTypeOf(op.getX()).getShape().back();
  int64_t size = tensorTypeOf(op.getResult()).getShape().back();
  std::vector<float> out;
  for (int64_t row = 0, rows = x.size() / from; row < rows; ++row) {
    ArrayRef<float> part = x.slice(row * from + op.getOffset(), size);
    out.insert(out.end(), part.begin(), part.end());
  }
  machine.set(op.getResult(), std::move(out));
  return success();
}
