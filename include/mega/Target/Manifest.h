// SPDX-License-Identifier: Apache-2.0
/// \file
/// The bundle's manifest (docs/bundle-format.md) and the phase table.

#ifndef MEGA_TARGET_MANIFEST_H
#define MEGA_TARGET_MANIFEST_H

#include "mega/IR/Mega.h"

#include "llvm/Support/JSON.h"
#include "llvm/Support/raw_ostream.h"

#include <string>

namespace mega {

/// Facts about the emitted and compiled kernel that the IR does not hold.
struct KernelFacts {
  std::string entry;
  int64_t sharedBytes;
  int64_t stampBytes;
  llvm::SmallVector<int64_t> phaseBytes;
};

/// One compiled architecture.
struct CompiledTarget {
  std::string arch;
  std::string file;
  int64_t registers;  ///< a thread
  int64_t spillBytes; ///< stores and loads, a thread
  int64_t stackBytes; ///< a thread
};

/// Everything the runtime must know about `kernel`. `relaxations` were
/// collected at level 0, where they stand.
llvm::json::Object makeManifest(KernelOp kernel, const KernelFacts &facts,
                                llvm::ArrayRef<CompiledTarget> targets,
                                llvm::json::Array relaxations);

/// Relaxation attributes of a level-0 module, in program order.
llvm::json::Array collectRelaxations(mlir::Operation *module);

/// Prints phases, stages, tiles and weight bytes, and totals.
void printPhaseTable(KernelOp kernel, const KernelFacts &facts,
                     llvm::raw_ostream &os);

} // namespace mega

#endif // MEGA_TARGET_MANIFEST_H
