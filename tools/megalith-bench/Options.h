// SPDX-License-Identifier: Apache-2.0
/// \file
/// The command line of megalith-bench, checked.

#ifndef MEGALITH_TOOLS_BENCH_OPTIONS_H
#define MEGALITH_TOOLS_BENCH_OPTIONS_H

#include <cstdint>
#include <string>
#include <vector>

namespace megalith::bench {

/// What to measure.
struct Options {
  enum class Action { Help, Measure, Calibrate, WriteKernels };
  Action action = Action::Measure;

  /// The bundle, then those of --vs or of --candidates.
  std::vector<std::string> bundles;
  std::vector<int64_t> contexts = {2048};
  int batch = 1;
  int steps = 192;   ///< timed a bundle and context, twice
  uint64_t seed = 1; ///< of weights, state and inputs
  unsigned threads = 0;
  int phaseSteps = 12;

  std::string machine; ///< --calibrate: keys to keep
  std::string output;  ///< -o
  std::string json;
  std::string kernels;
  std::string arch = "sm_90a"; ///< --write-kernels
  int device = 0;
};

/// Throws BenchError.
Options parseOptions(int argc, char **argv);

/// For --help.
std::string usage();

} // namespace megalith::bench

#endif // MEGALITH_TOOLS_BENCH_OPTIONS_H
