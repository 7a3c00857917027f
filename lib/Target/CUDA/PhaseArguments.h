// SPDX-License-Identifier: Apache-2.0
/// \file
/// The numbers in which two phases of one shape differ: where weights, buffers
/// and states lie. Phase code takes them from a table, so that equal layers run
/// the same instructions: code that was fetched for one is warm for the next.

#ifndef MEGA_LIB_TARGET_CUDA_PHASEARGUMENTS_H
#define MEGA_LIB_TARGET_CUDA_PHASEARGUMENTS_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/ADT/StringSet.h"

#include <string>

namespace mega {

/// Collects the arguments of one phase while its code is emitted.
class PhaseArguments {
public:
  /// As Operand::From in table.cuh.
  enum class From { Workspace, Weights, State };

  struct Argument {
    std::string field; ///< name in the phase's argument struct
    From from;         ///< what `value` is an offset from
    int64_t value;     ///< bytes, or a state's index
    std::string what;  ///< what lies there, for the table's comment
  };

  /// The C expression of the address of `what`, a pointer to bytes named after
  /// its last component; the same place under the same name is one argument.
  std::string add(llvm::StringRef what, From from, int64_t value);

  llvm::ArrayRef<Argument> getArguments() const { return arguments; }

private:
  llvm::SmallVector<Argument> arguments;
  llvm::StringSet<> fields;
};

} // namespace mega

#endif // MEGA_LIB_TARGET_CUDA_PHASEARGUMENTS_H
