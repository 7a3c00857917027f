// SPDX-License-Identifier: Apache-2.0
/// \file
/// What the drivers of the compiler have in common: flags with one meaning, and
/// main().

#ifndef MEGALITH_TOOLS_TOOL_H
#define MEGALITH_TOOLS_TOOL_H

#include "ChoiceFlag.h"
#include "CompileOptions.h"

#include "mlir/IR/MLIRContext.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/Support/CommandLine.h"

namespace mega {

/// --machine.
struct MachineFlag : llvm::cl::opt<std::string> {
  explicit MachineFlag(llvm::cl::OptionCategory &category);
};

/// --arch, of one architecture.
struct ArchFlag : llvm::cl::opt<std::string> {
  explicit ArchFlag(llvm::cl::OptionCategory &category);
};

/// --options.
struct OptionsFlag : llvm::cl::opt<std::string> {
  explicit OptionsFlag(llvm::cl::OptionCategory &category);
  /// What the file says; the defaults without one.
  llvm::Expected<CompileOptions> read() const;
};

/// --sync, --wait-limit and --schedule: what orders two stages.
struct ScheduleFlags {
  explicit ScheduleFlags(llvm::cl::OptionCategory &category);
  /// Puts those that were given over what `options` say.
  llvm::Error apply(CompileOptions &options) const;

  ChoiceFlag<Synchronization> sync;
  llvm::cl::opt<unsigned> waitLimit;
  llvm::cl::opt<std::string> schedule;
};

/// Fails unless `context` can be --context.
llvm::Error checkContext(int64_t context);

/// Prints an error as compilers do; the exit code.
int reportError(llvm::StringRef tool, llvm::Error error);

/// Runs `body` with a context that knows the dialects and prints diagnostics;
/// the exit code.
int runTool(llvm::StringRef tool,
            llvm::function_ref<llvm::Error(mlir::MLIRContext &)> body);

} // namespace mega

#endif // MEGALITH_TOOLS_TOOL_H
