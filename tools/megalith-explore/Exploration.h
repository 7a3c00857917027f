// SPDX-License-Identifier: Apache-2.0
/// \file
/// Compiles candidates, several at a time.

#ifndef MEGALITH_TOOLS_EXPLORE_EXPLORATION_H
#define MEGALITH_TOOLS_EXPLORE_EXPLORATION_H

#include "State.h"

#include "MachineChoice.h"

namespace mega::explore {

/// Where and how.
struct Setting {
  Subject subject;
  std::string blockPath, arch, machinePath; ///< each worker reads them
  std::string folder;
  int64_t jobs = 1;
};

/// True once the user asked to stop.
bool interrupted();
/// From here on, SIGINT and SIGTERM ask to stop.
void catchInterrupts();

/// Compiles every candidate that was not visited: lowers once for all that
/// differ in how they are emitted only, and saves the state after each such
/// group. Returns early if interrupted.
llvm::Error compileAll(const Setting &setting,
                       std::vector<Candidate> &candidates);

/// Writes the bundle of each of `chosen` that has none yet, into
/// folder/bundles, and folder/candidates.json with all that have one.
llvm::Error writeBundles(const Setting &setting,
                         std::vector<Candidate> &candidates,
                         llvm::ArrayRef<size_t> chosen);

/// Registers and spills of each of `chosen`, from NVRTC.
llvm::Error assemble(const Setting &setting, std::vector<Candidate> &candidates,
                     llvm::ArrayRef<size_t> chosen);

/// The folder's state file.
std::string statePath(const Setting &setting);

} // namespace mega::explore

#endif // MEGALITH_TOOLS_EXPLORE_EXPLORATION_H
