// SPDX-License-Identifier: Apache-2.0
/// \file
/// How much a stage has to do: bytes, weight units and reductions, counted from
/// the IR of level 2 or 3 for a number of CTAs and a context.

#ifndef MEGA_ANALYSIS_STAGEWORK_H
#define MEGA_ANALYSIS_STAGEWORK_H

#include "mega/IR/Mega.h"

namespace mega {

/// Where and for what the work is counted.
struct WorkSetting {
  int64_t ctas = 1;
  int64_t context = 0; ///< rows in each cache
};

struct StageWork {
  int64_t tiles = 0;
  /// Share of CTA time in which the tile lists keep the CTAs busy, weighted by
  /// what they read; 1 where CTAs share tiles.
  double waveEfficiency = 1;
  bool split = false; ///< whether CTAs share tiles

  int64_t units = 0;        ///< packed weight units
  int64_t largestUnits = 0; ///< of the CTA that has most
  int64_t unitBytes = 0;    ///< of one
  int64_t plainBytes = 0;   ///< of plain weights that tiles read
  int64_t stateBytes = 0;   ///< of states, read and written; caches not
  int64_t cacheBytes = 0;   ///< of caches, at the context
  /// What each CTA loads of the workspace: the prologue's whole vectors, and
  /// the operands of the tiles of the CTA that has most.
  int64_t fetchedBytes = 0;
  int64_t norms = 0, routers = 0; ///< in the prologue
  /// Multiplications of attention over a cache, of the CTA that has most.
  int64_t cacheMacs = 0;

  int64_t weightBytes() const { return units * unitBytes + plainBytes; }
};

StageWork measureStage(StageOp stage, const WorkSetting &setting);

} // namespace mega

#endif // MEGA_ANALYSIS_STAGEWORK_H
