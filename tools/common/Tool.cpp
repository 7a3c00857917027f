// SPDX-License-Identifier: Apache-2.0
/// \file
/// Shared flags and main().

#include "Tool.h"

#include "mega/IR/Mega.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/Diagnostics.h"
#include "llvm/Support/SourceMgr.h"
#include "llvm/Support/WithColor.h"

using namespace mlir;
using namespace mega;
namespace cl = llvm::cl;

MachineFlag::MachineFlag(cl::OptionCategory &category)
    : opt("machine",
          cl::desc("machine file (JSON) instead of the shipped one for --arch"),
          cl::cat(category)) {}

ArchFlag::ArchFlag(cl::OptionCategory &category)
    : opt("arch", cl::init("sm_90a"), cl::desc("architecture (default sm_90a)"),
          cl::cat(category)) {}

OptionsFlag::OptionsFlag(cl::OptionCategory &category)
    : opt("options",
          cl::desc("options file, as megalith-explore writes it; other flags "
                   "come on top"),
          cl::cat(category)) {}

llvm::Expected<CompileOptions> OptionsFlag::read() const {
  if (empty())
    return CompileOptions();
  return readOptionsFile(*this);
}

int mega::reportError(StringRef tool, llvm::Error error) {
  llvm::WithColor::error(llvm::errs(), tool)
      << llvm::toString(std::move(error)) << "\n";
  return 1;
}

int mega::runTool(StringRef tool,
                  llvm::function_ref<llvm::Error(MLIRContext &)> body) {
  DialectRegistry registry;
  registry.insert<MegaDialect, arith::ArithDialect, math::MathDialect>();
  MLIRContext context(registry);
  llvm::SourceMgr sources;
  SourceMgrDiagnosticHandler handler(sources, &context);
  // A message that names the thing needs no dump of the op after it.
  context.printOpOnDiagnostic(false);
  if (llvm::Error error = body(context))
    return reportError(tool, std::move(error));
  return 0;
}
