// SPDX-License-Identifier: Apache-2.0
/// \file
/// The level-2 boundary: every dependent pair of stages is ordered by a grid
/// barrier. It shares no decision with the scheduler: it reads the phases and
/// barriers that stand in the program, whoever put them there.

#include "mega/Analysis/StageAccess.h"
#include "mega/Transforms/Passes.h"

namespace mega {
#define GEN_PASS_DEF_VERIFYSCHEDULEPASS
#include "mega/Transforms/Passes.h.inc"
} // namespace mega

using namespace mlir;
using namespace mega;

namespace {

/// A stage and how many barriers stand before it.
struct PlacedStage {
  StageOp op;
  SmallVector<StageAccess> accesses;
  int64_t barriersBefore;
};

LogicalResult checkPair(const PlacedStage &earlier, const PlacedStage &later) {
  if (earlier.barriersBefore < later.barriersBefore)
    return success();
  auto edges = collectDependences(earlier.accesses, later.accesses);
  if (edges.empty())
    return success();
  const StageDependence &edge = edges.front();
  StageOp stage = later.op;
  InFlightDiagnostic diag =
      stage.emitOpError("'")
      << stage.getName() << "' and '" << StageOp(earlier.op).getName()
      << "' have no barrier between them, expected one "
         "for the "
      << describe(edge.kind) << " of " << describe(edge.later.resource);
  diag.attachNote(edge.earlier.op->getLoc()) << "the earlier access";
  diag.attachNote(edge.later.op->getLoc()) << "the later access";
  return diag;
}

/// Every buffer that a stage reads has been written by an earlier stage.
LogicalResult checkDefined(ArrayRef<PlacedStage> before,
                           const PlacedStage &stage) {
  for (const StageAccess &access : stage.accesses) {
    auto buffer = dyn_cast<Value>(access.resource);
    if (access.isWrite || !buffer || isa<BlockArgument>(buffer))
      continue;
    bool written = llvm::any_of(before, [&](const PlacedStage &other) {
      return llvm::any_of(other.accesses, [&](const StageAccess &a) {
        return a.isWrite && a.resource == access.resource;
      });
    });
    if (!written)
      return access.op->emitOpError("reads ")
             << describe(access.resource)
             << ", expected an earlier stage to write it";
  }
  return success();
}

LogicalResult checkContainer(Operation *container) {
  SmallVector<PlacedStage> placed;
  int64_t barriers = 0;
  for (Operation &op : container->getRegion(0).front()) {
    if (isa<GridBarrierOp>(op))
      ++barriers;
    if (isa<StageOp>(op))
      return op.emitOpError("stands outside a phase; -mega-schedule-phases "
                            "should have moved it");
    auto phase = dyn_cast<PhaseOp>(op);
    if (!phase)
      continue;
    for (StageOp stage : phase.getBody().getOps<StageOp>()) {
      PlacedStage next{stage, collectAccesses(stage), barriers};
      if (failed(checkDefined(placed, next)))
        return failure();
      for (const PlacedStage &earlier : placed)
        if (failed(checkPair(earlier, next)))
          return failure();
      placed.push_back(std::move(next));
    }
  }
  return success();
}

struct VerifySchedulePass
    : public mega::impl::VerifySchedulePassBase<VerifySchedulePass> {
  using Base::Base;

  void runOnOperation() override {
    for (Operation &op : getOperation().getBodyRegion().front())
      if (isa<ProgramOp, KernelOp>(op) && failed(checkContainer(&op)))
        return signalPassFailure();
  }
};

} // namespace
