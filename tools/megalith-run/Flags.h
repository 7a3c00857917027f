// SPDX-License-Identifier: Apache-2.0
/// \file
/// What the command lines of megalith-run and megalith-audit have in common.

#ifndef MEGA_TOOLS_RUN_FLAGS_H
#define MEGA_TOOLS_RUN_FLAGS_H

#include "Options.h"

#include "../common/ChoiceFlag.h"

#include "llvm/Support/CommandLine.h"
#include "llvm/Support/FormatVariadic.h"

namespace mega::run {

/// An error of the command line.
template <typename... Args>
llvm::Error usage(const char *format, Args &&...args) {
  return llvm::createStringError(
      llvm::formatv(format, std::forward<Args>(args)...).str());
}

/// The flags for weights, device and host threads.
struct CommonFlags {
  /// `weights` is what --weights is unless given.
  CommonFlags(llvm::cl::OptionCategory &category, const char *weights);

  /// Checks them and puts them into `options`.
  llvm::Error place(Options &options) const;

  std::string weightsText;
  llvm::cl::opt<std::string> weights, weightsPrefix;
  llvm::cl::opt<bool> extraTensors;
  llvm::cl::opt<unsigned> threads;
  llvm::cl::opt<int> device;
};

} // namespace mega::run

#endif // MEGA_TOOLS_RUN_FLAGS_H
