// SPDX-License-Identifier: Apache-2.0
/// \file
/// What an op sees while a step runs, and the meaning of every op. One file
/// per family of ops defines the `evaluate` overloads.

#ifndef MEGA_LIB_REFERENCE_MACHINE_H
#define MEGA_LIB_REFERENCE_MACHINE_H

#include "Kernels.h"
#include "ScalarProgram.h"

#include "mega/Reference/Interpreter.h"

#include "llvm/ADT/DenseMap.h"

namespace mega::reference {

/// A quantised weight: one matrix for each stacked expert.
using QuantStack = std::vector<QuantMatrix>;

/// Weights, state and the values computed so far.
class Machine {
public:
  /// Plain-tensor weights.
  llvm::StringMap<TensorView> dense;
  llvm::StringMap<QuantStack> quantised;
  llvm::StringMap<StateValue> states;
  /// Compiled regions of map and experts ops.
  llvm::DenseMap<mlir::Operation *, ScalarProgram> programs;
  std::vector<RouterProbe> probes;
  int64_t position = 0;
  unsigned threads = 1;
  bool honourRelaxations = false;

  /// The elements of a tensor value.
  llvm::ArrayRef<float> get(mlir::Value value) const {
    return values.find(value)->second;
  }
  /// Rounds `elements` to the value's element type and stores them.
  void set(mlir::Value value, std::vector<float> elements);

  /// The elements of an i32 tensor value.
  llvm::ArrayRef<int32_t> getIds(mlir::Value value) const {
    return ids.find(value)->second;
  }
  void setIds(mlir::Value value, std::vector<int32_t> elements) {
    ids[value] = std::move(elements);
  }

  /// All elements of a plain-tensor weight.
  std::vector<float> readDense(llvm::StringRef name) const;

  /// Forgets the values of the last step.
  void clearValues();

private:
  llvm::DenseMap<mlir::Value, std::vector<float>> values;
  llvm::DenseMap<mlir::Value, std::vector<int32_t>> ids;
};

/// Fills `dense` or `quantised` from checkpoint views, checking presence,
/// type, shape and zero points.
mlir::LogicalResult bindWeight(WeightOp weight, const TensorViews &views,
                               Machine &machine);

/// The tensor type of a level-0 value.
inline mlir::RankedTensorType tensorTypeOf(mlir::Value value) {
  return llvm::cast<mlir::RankedTensorType>(value.getType());
}

mlir::LogicalResult evaluate(MapOp op, Machine &machine);
mlir::LogicalResult evaluate(ReshapeOp op, Machine &machine);
mlir::LogicalResult evaluate(SliceOp op, Machine &machine);
mlir::LogicalResult evaluate(RmsNormOp op, Machine &machine);
mlir::LogicalResult evaluate(LinearOp op, Machine &machine);
mlir::LogicalResult evaluate(ShortConvOp op, Machine &machine);
mlir::LogicalResult evaluate(DeltaRuleOp op, Machine &machine);
mlir::LogicalResult evaluate(RopeOp op, Machine &machine);
mlir::LogicalResult evaluate(CacheAppendOp op, Machine &machine);
mlir::LogicalResult evaluate(LatentAttentionOp op, Machine &machine);
mlir::LogicalResult evaluate(RouterOp op, Machine &machine);
mlir::LogicalResult evaluate(ExpertsOp op, Machine &machine);

} // namespace mega::reference

#endif // MEGA_LIB_REFERENCE_MACHINE_H
