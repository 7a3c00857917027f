// SPDX-License-Identifier: Apache-2.0
/// \file
/// Prepare: the facts about a kernel that emission needs, gathered once from
/// the IR into plain values. Nothing here or later changes the IR.

#ifndef MEGA_LIB_TARGET_CUDA_KERNELMODEL_H
#define MEGA_LIB_TARGET_CUDA_KERNELMODEL_H

#include "mega/IR/Mega.h"
#include "mega/Target/CUDA/EmitterOptions.h"

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/Support/MathExtras.h"

namespace mega {

/// A packed weight as the kernel sees it.
struct PackedWeight {
  int64_t offset = 0;  ///< in the weight arena, bytes
  int64_t inputs = 0;  ///< before padding
  int64_t outputs = 0; ///< of one matrix
  int64_t sets = 1;    ///< groups of scales in a unit
  bool pair = false;   ///< two weights in one unit

  int64_t steps() const { return llvm::divideCeil(inputs, kUnitInputs); }
  int64_t rowsPerTile() const { return pair ? kUnitOutputs / 2 : kUnitOutputs; }
  int64_t tiles() const { return llvm::divideCeil(outputs, rowsPerTile()); }
  int64_t unitBytes() const { return 1024 + 64 * sets; }
  int64_t matrixBytes() const { return tiles() * steps() * unitBytes(); }
};

/// How a split anchor's partial sums lie in their buffer.
struct PartialSums {
  int64_t tiles = 0; ///< of the list that was shared out; 0: every slot is full
  int64_t bursts = 0;    ///< of each tile
  int64_t firstTile = 0; ///< of this anchor in the list
  int64_t slots = 0;
};

class KernelModel {
public:
  KernelModel(KernelOp kernel, RingShape ring);

  KernelOp getKernel() const { return kernel; }
  TargetAttr getTarget() const { return target; }
  int64_t threads() const { return target.getThreads(); }

  /// Byte offset of a weight that lies in the arena as it was given.
  int64_t rawOffset(llvm::StringRef weight) const;
  /// A quantised weight; experts' stacks are named by their first source.
  PackedWeight packed(llvm::StringRef weight) const;
  mlir::Type weightType(llvm::StringRef weight) const;

  int64_t stateIndex(llvm::StringRef state) const;
  /// True if no other stage touches the state: a stage may then read it before
  /// the barrier in front of it.
  bool isPrivate(llvm::StringRef state, StageOp stage) const;
  /// True if a stage of the phase before `stage`'s touches the state. If not, a
  /// stage may read it before that barrier, too: an earlier one has ordered it.
  bool isTouchedJustBefore(llvm::StringRef state, StageOp stage) const;
  mlir::RankedTensorType stateType(llvm::StringRef state) const;

  /// Partial sums in `buffer`, written by a split anchor.
  PartialSums partialSums(mlir::Value buffer) const;

  /// The ring through which weight units come lies at the start of shared
  /// memory: its barriers in every phase, its slots in phases that use it.
  RingShape getRing() const { return ring; }
  int64_t ringUnitBytes() const { return unitBytes; }
  int64_t ringBarrierBytes() const {
    return llvm::alignTo(threads() / 32 * ring.slots * 8, 16);
  }
  /// Units of a burst, which is in one segment of `segment` units.
  int64_t burstUnits(int64_t segment) const {
    int64_t units = ring.units;
    while (segment % units != 0)
      --units;
    return units;
  }
  int64_t ringBytes() const {
    return ringBarrierBytes() +
           threads() / 32 * ring.slots * ring.units * unitBytes;
  }

  /// True if the stage takes weights through the ring.
  static bool usesRing(StageOp stage);

  /// Quantised linears of a stage, in tile order: one list of tiles.
  static llvm::SmallVector<LinearOp> quantLinears(StageOp stage);

private:
  KernelOp kernel;
  TargetAttr target;
  llvm::StringMap<int64_t> offsets;
  llvm::StringMap<bool> pairs;
  llvm::StringMap<int64_t> stateIndices;
  RingShape ring;
  int64_t unitBytes = 16;
};

} // namespace mega

#endif // MEGA_LIB_TARGET_CUDA_KERNELMODEL_H
