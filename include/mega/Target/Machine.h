// SPDX-License-Identifier: Apache-2.0
/// \file
/// Machine files: what the compiler knows about a GPU. JSON with the keys
/// `name`, `arch` ("sm_90a"), `ctas` (upper bound of the grid, one CTA an SM),
/// `threads` (a CTA) and `shared_bytes` (dynamic shared memory a CTA).

#ifndef MEGA_TARGET_MACHINE_H
#define MEGA_TARGET_MACHINE_H

#include "mega/IR/Mega.h"

#include "llvm/Support/Error.h"

namespace mega {

/// The target in the JSON text `json`; errors name `file`, the key, what was
/// found and what was wanted.
llvm::Expected<TargetAttr> parseMachine(mlir::MLIRContext *context,
                                        llvm::StringRef json,
                                        llvm::StringRef file);

/// The shipped machine file for `arch`; the error lists those there are.
llvm::Expected<TargetAttr> builtinMachine(mlir::MLIRContext *context,
                                          llvm::StringRef arch);

} // namespace mega

#endif // MEGA_TARGET_MACHINE_H
