// SPDX-License-Identifier: Apache-2.0
/// \file
/// Kernel text from the compiler, in this process.

#include "KernelText.h"

#include "Compile.h"

#include "mega/Target/Machine.h"

#include "mlir/IR/Diagnostics.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/SourceMgr.h"

using namespace llvm;
using namespace mega;
using namespace mega::run;

/// The architecture whose shipped machine file decides tiles and phases; the
/// same as megalithc's default.
static constexpr StringRef arch = "sm_90a";

Expected<KernelText> mega::run::compileText(const Description &description) {
  BlockOp block = description.block();
  mlir::MLIRContext *context = block.getContext();
  llvm::SourceMgr sources;
  mlir::SourceMgrDiagnosticHandler handler(sources, context);
  auto target = builtinMachine(context, arch);
  if (!target)
    return target.takeError();
  auto kernel = compileBlock(block->getParentOfType<mlir::ModuleOp>(), *target,
                             EmitterOptions{});
  // Diagnostics have said what is wrong.
  if (failed(kernel))
    return createStringError("cannot compile block '" + block.getSymName() +
                             "' for " + arch);
  json::Value json =
      makeManifest(kernel->kernel, kernel->facts(), /*targets=*/{},
                   std::move(kernel->relaxations));
  auto bundle = std::make_shared<megalith::Bundle>();
  bundle->text = formatv("{0:2}\n", json).str();
  auto manifest = megalith::parseManifest(bundle->text, "manifest");
  if (!manifest)
    return createStringError(manifest.status().message());
  bundle->manifest = std::move(*manifest);
  return KernelText{std::move(bundle), std::move(kernel->emitted.source)};
}
