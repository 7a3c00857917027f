// SPDX-License-Identifier: Apache-2.0
/// \file
/// A block description to one architecture's kernel.

#ifndef MEGALITH_TOOLS_COMPILE_H
#define MEGALITH_TOOLS_COMPILE_H

#include "mega/IR/Mega.h"
#include "mega/Target/CUDA/Emit.h"
#include "mega/Target/Manifest.h"
#include "mega/Transforms/Passes.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"

namespace mega {

/// A block at level 3.
struct LoweredBlock {
  mlir::OwningOpRef<mlir::ModuleOp> module;
  KernelOp kernel; ///< in `module`
  llvm::json::Array relaxations;
};

/// A lowered and emitted block.
struct CompiledKernel : LoweredBlock {
  EmittedKernel emitted;

  KernelFacts facts() const {
    return {emitted.entry, emitted.sharedBytes, emitted.stampBytes,
            emitted.phaseBytes};
  }
};

/// Parses `path`; errors are diagnostics.
mlir::OwningOpRef<mlir::ModuleOp> parseBlock(llvm::StringRef path,
                                             mlir::MLIRContext &context);

/// Lowers a copy of `block` for `target`; errors are diagnostics. Emitter
/// options have no part in it: emitCuda() can be called with others again.
mlir::FailureOr<LoweredBlock> lowerBlock(mlir::ModuleOp block,
                                         TargetAttr target,
                                         const ScheduleOptions &schedule = {},
                                         const StageOptions &stages = {});

/// Lowers a copy of `block` for `target` and emits it; errors are diagnostics.
mlir::FailureOr<CompiledKernel> compileBlock(
    mlir::ModuleOp block, TargetAttr target, const EmitterOptions &options,
    const ScheduleOptions &schedule = {}, const StageOptions &stages = {});

} // namespace mega

#endif // MEGALITH_TOOLS_COMPILE_H
