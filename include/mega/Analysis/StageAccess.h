// SPDX-License-Identifier: Apache-2.0
/// \file
/// Which memory a stage touches: the question behind scheduling, checking and
/// memory planning. It reads the IR and decides nothing.

#ifndef MEGA_ANALYSIS_STAGEACCESS_H
#define MEGA_ANALYSIS_STAGEACCESS_H

#include "mega/IR/Mega.h"

#include "llvm/ADT/PointerUnion.h"

namespace mega {

/// What is touched: a buffer value, or a state's symbol name.
using Resource = llvm::PointerUnion<mlir::Value, mlir::StringAttr>;

/// One access of a stage.
struct StageAccess {
  Resource resource;
  bool isWrite;
  mlir::Operation *op;
};

/// All accesses of `stage` in program order. An op that updates state counts
/// as a read and a write.
llvm::SmallVector<StageAccess> collectAccesses(StageOp stage);

/// One dependence between two stages.
struct StageDependence {
  enum class Kind { ReadAfterWrite, WriteAfterRead, WriteAfterWrite };
  Kind kind;
  StageAccess earlier;
  StageAccess later;
};

/// The dependences of `later` on `earlier`, which precedes it in the program.
llvm::SmallVector<StageDependence>
collectDependences(llvm::ArrayRef<StageAccess> earlier,
                   llvm::ArrayRef<StageAccess> later);

/// "read after write" and so on.
llvm::StringRef describe(StageDependence::Kind kind);

/// The name a person knows the resource by: a buffer's name, "the input", "the
/// output", or "@state".
std::string describe(Resource resource);

} // namespace mega

#endif // MEGA_ANALYSIS_STAGEACCESS_H
