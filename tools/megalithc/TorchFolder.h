// SPDX-License-Identifier: Apache-2.0
/// \file
/// The folder that --emit=torch writes.

#ifndef MEGALITH_TOOLS_TORCH_FOLDER_H
#define MEGALITH_TOOLS_TORCH_FOLDER_H

#include "Compile.h"

#include "llvm/Support/Error.h"

#include <string>

namespace mega {

/// libmegalith.so: `given` if not empty, else where it lies beside the program
/// `argv0`, in a build tree or an installation.
llvm::Expected<std::string> findRuntimeLibrary(llvm::StringRef given,
                                               const char *argv0);

/// Writes a Python package: the torch module of `block`, which came from
/// `source`, its bundle with images for `archs` and PTX for `ptxArchs`, the
/// runtime's package and `library`. The folder
/// appears whole or not at all; one that is there and was written by this is
/// replaced.
llvm::Error writeTorchFolder(llvm::StringRef path, mlir::ModuleOp block,
                             llvm::StringRef source, CompiledKernel &kernel,
                             llvm::ArrayRef<std::string> archs,
                             llvm::ArrayRef<std::string> ptxArchs,
                             llvm::StringRef library);

} // namespace mega

#endif // MEGALITH_TOOLS_TORCH_FOLDER_H
