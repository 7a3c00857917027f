// SPDX-License-Identifier: Apache-2.0
/// \file
/// Runs the pipeline and the emitter.

#include "Compile.h"

#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"

using namespace mlir;
using namespace mega;

OwningOpRef<ModuleOp> mega::parseBlock(StringRef path, MLIRContext &context) {
  return parseSourceFile<ModuleOp>(path, ParserConfig(&context));
}

FailureOr<LoweredBlock> mega::lowerBlock(ModuleOp block, TargetAttr target,
                                         const ScheduleOptions &schedule,
                                         const StageOptions &stages) {
  LoweredBlock result;
  result.relaxations = collectRelaxations(block);
  result.module = block.clone();
  (*result.module)->setAttr(kTargetAttrName, target);
  PassManager pm(block.getContext());
  buildPipeline(pm, schedule, stages);
  if (failed(pm.run(*result.module)))
    return failure();
  result.kernel = *result.module->getOps<KernelOp>().begin();
  return result;
}

FailureOr<CompiledKernel> mega::compileBlock(ModuleOp block, TargetAttr target,
                                             const EmitterOptions &options,
                                             const ScheduleOptions &schedule,
                                             const StageOptions &stages) {
  FailureOr<LoweredBlock> lowered = lowerBlock(block, target, schedule, stages);
  if (failed(lowered))
    return failure();
  FailureOr<EmittedKernel> emitted = emitCuda(lowered->kernel, options);
  if (failed(emitted))
    return failure();
  return CompiledKernel{std::move(*lowered), std::move(*emitted)};
}
