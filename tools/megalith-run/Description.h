// SPDX-License-Identifier: Apache-2.0
/// \file
/// What a block wants: its weights, states, input and output, taken from its
/// level-0 text or from a bundle's manifest.

#ifndef MEGA_TOOLS_RUN_DESCRIPTION_H
#define MEGA_TOOLS_RUN_DESCRIPTION_H

#include "Options.h"

#include "mega/Reference/Interpreter.h"
#include "mega/runtime/Manifest.h"

namespace mega::run {

/// A block that has been read, and its bundle if there is one.
class Description {
public:
  /// Reads what `options` names. A bundle and a text must agree.
  static llvm::Expected<std::unique_ptr<Description>>
  load(const Options &options);

  /// Weights, states, input and output. Only `bundle()->manifest` has the
  /// launch data.
  const megalith::Manifest &manifest() const { return wants; }

  /// Null without a bundle.
  std::shared_ptr<const megalith::Bundle> bundle() const { return kernel; }

  /// Null without a description.
  BlockOp block() const { return blockOp; }

private:
  Description();
  llvm::Error parse(const std::string &path);

  mlir::MLIRContext context;
  mlir::OwningOpRef<mlir::ModuleOp> module;
  BlockOp blockOp;
  megalith::Manifest wants;
  std::shared_ptr<const megalith::Bundle> kernel;
};

} // namespace mega::run

#endif // MEGA_TOOLS_RUN_DESCRIPTION_H
