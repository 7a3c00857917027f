// SPDX-License-Identifier: Apache-2.0
/// \file
/// One way to compile the block, and what is known about it.

#ifndef MEGALITH_TOOLS_EXPLORE_CANDIDATE_H
#define MEGALITH_TOOLS_EXPLORE_CANDIDATE_H

#include "CompileOptions.h"

#include <optional>
#include <string>
#include <vector>

namespace mega::explore {

/// What the compiler made of it.
struct Compiled {
  int64_t barriers = 0, phases = 0;
  double predictedUs = 0;
  int64_t workspaceBytes = 0, sharedBytes = 0;
  std::string kernelHash; ///< of the emitted text
};

/// What NVRTC made of it.
struct Assembled {
  int64_t registers = 0, spillBytes = 0;
};

struct Candidate {
  int64_t id = 0; ///< place in the enumeration; 0 is the default
  CompileOptions options;
  std::optional<Compiled> compiled;
  std::string error; ///< why it cannot be compiled; empty if not known
  std::optional<Assembled> assembled;
  std::string bundle; ///< path in the folder, once written
  std::optional<double> measuredUs;

  bool visited() const { return compiled || !error.empty(); }
};

/// Every combination of knob values that differs in more than idle knobs, the
/// default first, then those that differ from it in fewer knobs.
std::vector<Candidate> enumerate();

/// "default", or the knobs that differ from it, "sync=counters prefetch=off".
std::string describe(const CompileOptions &options);

/// Indices of candidates whose kernel no earlier one has.
std::vector<size_t> distinct(llvm::ArrayRef<Candidate> candidates);

/// Those of `among` that no other beats in barriers and predicted time, by
/// time.
std::vector<size_t> paretoFront(llvm::ArrayRef<Candidate> candidates,
                                llvm::ArrayRef<size_t> among);

/// The fastest of `among`: measured, if any was; predicted else. Nothing if
/// none was compiled.
std::optional<size_t> fastest(llvm::ArrayRef<Candidate> candidates,
                              llvm::ArrayRef<size_t> among);

} // namespace mega::explore

#endif // MEGALITH_TOOLS_EXPLORE_CANDIDATE_H
