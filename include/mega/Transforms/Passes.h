// SPDX-License-Identifier: Apache-2.0
/// \file
/// The passes and the pipeline that joins them.

#ifndef MEGA_TRANSFORMS_PASSES_H
#define MEGA_TRANSFORMS_PASSES_H

#include "mega/IR/Mega.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"

#include <string>

namespace mega {

/// The grid barrier's counter comes first in the workspace, on its own.
constexpr int64_t kBarrierBytes = 256;

/// What may order two stages that depend on each other.
enum class Synchronization { Barriers, Counters };

/// What the scheduler may choose from.
struct ScheduleOptions {
  Synchronization sync = Synchronization::Barriers;
  /// Tiles that one counter may stand for.
  int64_t waitLimit = 64;
  /// A schedule file to follow instead; empty for none.
  std::string file;
};

/// What may become one stage, and what is computed twice.
struct StageOptions {
  /// Anchors whose tiles keep less than this share of the grid busy are split.
  double splitBelow = 0.9;
  /// Linears of one operand share a stage.
  bool joinLinears = true;
  /// Publish prologue values that later stages need again.
  bool publishReused = true;
};

#define GEN_PASS_DECL
#include "mega/Transforms/Passes.h.inc"

#define GEN_PASS_REGISTRATION
#include "mega/Transforms/Passes.h.inc"

/// Level 0 to level 3. The module must carry `mega.target`.
void buildPipeline(mlir::OpPassManager &pm,
                   const ScheduleOptions &schedule = {},
                   const StageOptions &stages = {});

/// Registers `buildPipeline` as `-mega-pipeline`.
void registerPipelines();

} // namespace mega

#endif // MEGA_TRANSFORMS_PASSES_H
