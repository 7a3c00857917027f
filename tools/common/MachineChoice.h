// SPDX-License-Identifier: Apache-2.0
/// \file
/// The machine that a tool works for: a shipped file, or the user's.

#ifndef MEGALITH_TOOLS_MACHINECHOICE_H
#define MEGALITH_TOOLS_MACHINECHOICE_H

#include "mega/Target/Machine.h"

namespace mega {

struct MachineChoice {
  TargetAttr target;
  MachineCosts costs;
  std::string text; ///< of the file
};

/// The file `path` if that is not empty, else the shipped one for `arch`.
llvm::Expected<MachineChoice> chooseMachine(mlir::MLIRContext &context,
                                            llvm::StringRef arch,
                                            llvm::StringRef path);

} // namespace mega

#endif // MEGALITH_TOOLS_MACHINECHOICE_H
