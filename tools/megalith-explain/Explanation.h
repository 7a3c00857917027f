// SPDX-License-Identifier: Apache-2.0
/// \file
/// What there is to say about a compiled block, as plain values that every
/// format prints.

#ifndef MEGALITH_TOOLS_EXPLAIN_EXPLANATION_H
#define MEGALITH_TOOLS_EXPLAIN_EXPLANATION_H

#include "Measured.h"

#include "mega/Analysis/CostModel.h"

#include <optional>
#include <string>
#include <vector>

namespace mega::explain {

struct StageInfo {
  std::string name, location;
  int64_t tiles;
  double waveEfficiency;
  bool split; ///< whether CTAs share tiles
};

struct PhaseInfo {
  int64_t index;
  std::vector<StageInfo> stages;
  int64_t bytes; ///< of weights
  int64_t stateBytes, cacheBytes;
  double waveEfficiency;
  double workUs, syncUs;
  /// Part of workUs that a CTA with fewer tiles has less of.
  double sharedUs;
  std::vector<double> termUs; ///< as costTerms()
  std::optional<MeasuredPhase> measured;
};

/// A dependence between two stages through one buffer or state.
struct EdgeInfo {
  std::string from, to, resource;
  std::string kind; ///< "read after write", ...
  /// "all_to_all", "tile_local", "scalar", "index" or "state".
  std::string type;
  std::string producerLocation, consumerLocation;
  int64_t bytes;
  int64_t fromPhase, toPhase;
  /// Whether nothing but one synchronisation stands between.
  bool tight;
  std::string coveredBy; ///< "barrier" or "counter"
};

/// A grid barrier, or a stage's wait for a set of counters.
struct SyncInfo {
  std::string kind; ///< "barrier" or "counter"
  int64_t index;    ///< among those of its kind
  int64_t phase;    ///< it stands behind, or in
  double predictedUs;
  std::vector<size_t> edges; ///< tight ones, indices into Explanation::edges
  std::string why;           ///< why it is not something cheaper
  /// Counters only: who waits, for how many signals, at how many counters.
  std::string stage;
  int64_t target = 0, count = 0;
};

struct Explanation {
  std::string block, arch, machine;
  int64_t ctas, context;
  bool calibrated;
  std::vector<PhaseInfo> phases;
  std::vector<EdgeInfo> edges;
  std::vector<SyncInfo> syncs; ///< in the order in which they happen
  int64_t barriers, counterWaits;
  /// Fewest barriers for these stages with the schedule's means, and the chain
  /// of dependences that proves it, one for each barrier.
  int64_t lowerBound;
  std::vector<std::string> chain;
  int64_t weightBytes, stateBytes, cacheBytes, cacheBytesPerToken;
  double predictedUs; ///< phases and launch
  double launchUs, rooflineUs;
  std::optional<Measurement> measured;
};

/// Explains `kernel` (level 3).
Explanation explain(KernelOp kernel, const MachineCosts &costs,
                    const WorkSetting &setting,
                    std::optional<Measurement> measured);

/// Relative error of the phases' predicted work, and of the token, where they
/// were measured.
struct PredictionError {
  double medianPhase, token;
};
std::optional<PredictionError> errorOf(const Explanation &explanation);

} // namespace mega::explain

#endif // MEGALITH_TOOLS_EXPLAIN_EXPLANATION_H
