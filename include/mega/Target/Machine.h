// SPDX-License-Identifier: Apache-2.0
/// \file
/// Machine files: what the compiler knows about a GPU. JSON with the keys
/// `name`, `arch` ("sm_90a"), `ctas` (upper bound of the grid, one CTA an SM),
/// `threads` (a CTA) and `shared_bytes` (dynamic shared memory a CTA); and what
/// things cost there, which predictions read (docs/machines.md).

#ifndef MEGA_TARGET_MACHINE_H
#define MEGA_TARGET_MACHINE_H

#include "mega/Analysis/MachineCosts.h"
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

/// The text of the shipped machine file for `arch`; errors as builtinMachine's.
llvm::Expected<llvm::StringRef> builtinMachineText(llvm::StringRef arch);

/// The costs in the JSON text `json`; errors as parseMachine's. A file without
/// `costs` is one.
llvm::Expected<MachineCosts> parseMachineCosts(llvm::StringRef json,
                                               llvm::StringRef file);

} // namespace mega

#endif // MEGA_TARGET_MACHINE_H
