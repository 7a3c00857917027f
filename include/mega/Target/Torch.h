// SPDX-License-Identifier: Apache-2.0
/// \file
/// A torch.nn.Module for a block: Python text over the runtime's package.

#ifndef MEGA_TARGET_TORCH_H
#define MEGA_TARGET_TORCH_H

#include "mlir/IR/BuiltinOps.h"
#include "llvm/ADT/ArrayRef.h"

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace mega {

/// Python text, by file name.
struct TorchModule {
  std::string className; ///< such as Motif for block "motif"
  std::string module;    ///< module.py: the class
  std::string init;      ///< __init__.py, which imports it
};

/// The module of a level-0 description called `source`. Its folder must have
/// the bundle in bundle/ and the package in megalith/. Fails, with a located
/// error, if a name has no place in Python: not UTF-8, or a state that is also
/// the prefix of another.
mlir::FailureOr<TorchModule> emitTorchModule(mlir::ModuleOp block,
                                             llvm::StringRef source);

/// The files of the Python package `megalith`, as (name, text).
std::vector<std::pair<std::string_view, std::string_view>> pythonPackage();

} // namespace mega

#endif // MEGA_TARGET_TORCH_H
