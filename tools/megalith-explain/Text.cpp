// SPDX-License-Identifier: Apache-2.0
/// \file
/// The phase table and the reasons, for a terminal.

#include "Formats.h"

#include "llvm/Support/Format.h"

using namespace mega::explain;
using llvm::format;

static void printPhases(const Explanation &x, llvm::raw_ostream &os) {
  os << "phase  tiles  wave  weights [MB]  work us  sync us";
  if (x.measured)
    os << "  measured: work, wait";
  os << "  stage (where)\n";
  for (const PhaseInfo &phase : x.phases)
    for (const StageInfo &stage : phase.stages) {
      if (&stage == &phase.stages.front()) {
        os << format("%5lld  %5lld  %3.0f%%  %12.3f  %7.2f  %7.2f",
                     (long long)phase.index, (long long)stage.tiles,
                     100 * stage.waveEfficiency, phase.bytes / 1e6,
                     phase.workUs, phase.syncUs);
        if (phase.measured)
          os << format("  %14.2f %5.2f", phase.measured->workUs,
                       phase.measured->waitUs);
      } else {
        os << format("       %5lld  %3.0f%%  %32s", (long long)stage.tiles,
                     100 * stage.waveEfficiency, "");
        if (phase.measured)
          os << format("%22s", "");
      }
      os << "  " << stage.name;
      if (!stage.location.empty())
        os << " (" << stage.location << ")";
      os << "\n";
    }
}

static void printSyncs(const Explanation &x, llvm::raw_ostream &os) {
  for (const SyncInfo &sync : x.syncs) {
    os << "\n" << sync.kind << " " << sync.index;
    if (sync.kind == "barrier")
      os << " after phase " << sync.phase;
    else
      os << " in phase " << sync.phase << ", before tiles of " << sync.stage;
    os << format(", %.2f us\n", sync.predictedUs);
    for (size_t index : sync.edges) {
      const EdgeInfo &edge = x.edges[index];
      os << "  " << edge.from << " -> " << edge.to << ": " << edge.kind
         << " of " << edge.resource << ", " << edge.bytes << " B, " << edge.type
         << " (" << edge.producerLocation << " -> " << edge.consumerLocation
         << ")\n";
    }
    os << "  why: " << sync.why << "\n";
  }
}

static void printChain(llvm::ArrayRef<std::string> chain,
                       llvm::raw_ostream &os) {
  os << "  because each of these needs one, after the one before:\n";
  for (const std::string &link : chain)
    os << "    " << link << "\n";
}

void mega::explain::printText(const Explanation &x, llvm::raw_ostream &os) {
  os << "block " << x.block << " for " << x.arch << ", " << x.ctas
     << " CTAs, context " << x.context << "\n"
     << "costs: " << x.machine
     << (x.calibrated ? ""
                      : " (placeholders: not "
                        "measured on this GPU)")
     << "\n\n";
  printPhases(x, os);
  os << format("\npredicted %.1f us a token (roofline %.1f us: %.2f MB of "
               "weights, %.2f of state, %.2f of cache)\n",
               x.predictedUs, x.rooflineUs, x.weightBytes / 1e6,
               x.stateBytes / 1e6, x.cacheBytes / 1e6);
  if (std::optional<PredictionError> error = errorOf(x)) {
    if (x.measured->tokenUs)
      os << format("measured %.1f us, back to back, on %s at context %lld\n",
                   *x.measured->tokenUs, x.measured->device.c_str(),
                   (long long)x.measured->context);
    os << format("prediction is off by %.1f %% for the token, by %.1f %% for "
                 "the work of the phase in the middle\n",
                 100 * error->token, 100 * error->medianPhase);
  }
  if (x.counterWaits != 0)
    os << format("%lld waits for counters; ", (long long)x.counterWaits);
  os << format("%lld grid barriers; at least %lld for these stages with "
               "what may order them\n",
               (long long)x.barriers, (long long)x.lowerBound);
  printChain(x.chain, os);
  printSyncs(x, os);
}
