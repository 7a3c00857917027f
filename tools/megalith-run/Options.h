// SPDX-License-Identifier: Apache-2.0
/// \file
/// The command line of megalith-run, checked.

#ifndef MEGA_TOOLS_RUN_OPTIONS_H
#define MEGA_TOOLS_RUN_OPTIONS_H

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace mega::run {

/// Where numbers come from: a safetensors file, or a generator.
struct Source {
  std::string path;
  /// Set for `random:SEED`, and for `balanced:SEED` of weights.
  std::optional<uint64_t> seed;
  /// Whether random weights are as large as their inputs are few.
  bool balanced = false;
};

/// How the simulator runs (docs/simulator.md).
struct SimChoices {
  uint64_t seed = 0;
  std::string policy = "round-robin"; ///< one of simPolicies()
  int ctas = 0;                       ///< 0 for the simulator's own choice
  bool races = true;
};

/// What to run.
struct Options {
  enum class Target { Reference, Cuda, Sim };
  Target target = Target::Reference;
  /// The level-0 description; empty if there is none.
  std::string block;
  /// The bundle's directory; empty if there is none.
  std::string bundle;
  bool check = false;

  Source weights, state, input;
  std::string weightsPrefix, statePrefix;
  bool extraTensors = false;

  /// One run for each context and seed. Without `sweep` there is one seed, of
  /// no meaning, and `context` -1 means as many rows as the state file has.
  std::vector<int64_t> contexts;
  std::vector<uint64_t> seeds;
  bool sweep = false;

  int64_t steps = 1;
  bool feedOutput = false;
  bool noise = false;
  /// Further steps to time on the device.
  int64_t timedSteps = 0;
  unsigned threads = 0;
  bool relaxed = false; ///< the reference honours relaxations
  int device = 0;
  SimChoices sim;
  std::string output;

  double minCosine = 0.99999, maxError = 3e-3, tieGap = 0.05;
};

/// `text` as a file, `random:SEED`, or, for weights, `balanced:SEED`; `flag` is
/// the option's name.
llvm::Expected<Source> parseSource(llvm::StringRef flag, llvm::StringRef text);

/// Parses the command line; exits by itself for `--help` and unknown flags.
llvm::Expected<Options> parseOptions(int argc, char **argv);

} // namespace mega::run

#endif // MEGA_TOOLS_RUN_OPTIONS_H
