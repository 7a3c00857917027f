// SPDX-License-Identifier: Apache-2.0
/// \file
/// The level-1 boundary: every stage is partitioned.

#include "mega/Analysis/TileAccess.h"
#include "mega/Transforms/Passes.h"

namespace mega {
#define GEN_PASS_DEF_VERIFYSTAGESPASS
#include "mega/Transforms/Passes.h.inc"
} // namespace mega

using namespace mlir;
using namespace mega;

namespace {

struct VerifyStagesPass
    : public mega::impl::VerifyStagesPassBase<VerifyStagesPass> {
  using Base::Base;

  void runOnOperation() override {
    WalkResult result = getOperation().walk([](Operation *op) {
      return failed(check(op)) ? WalkResult::interrupt()
                               : WalkResult::advance();
    });
    if (result.wasInterrupted())
      signalPassFailure();
  }

private:
  static LogicalResult check(Operation *op) {
    if (isa<BlockOp, ExpertsOp, LatentAttentionOp>(op))
      return op->emitOpError("belongs to level 0; -mega-form-stages should "
                             "have lowered it");
    if (auto stage = dyn_cast<StageOp>(op)) {
      if (!stage.getTiles())
        return op->emitOpError(
            "has no tile list; -mega-partition should have set it");
      if (*stage.getTiles() == 0)
        return op->emitOpError("has 0 tiles, expected an anchor");
    }
    if (!isa<LoadOp, LoadSumOp, StoreOp>(op))
      return success();
    auto access = op->getAttrOfType<AccessAttr>("access");
    if (!access)
      return op->emitOpError("has no access relation; -mega-partition should "
                             "have set it");
    if (!op->getParentOfType<StageOp>().getTiles())
      return success(); // of which the stage's own check will tell
    // What the schedule is checked against must be what the code does.
    AccessAttr wanted = deriveAccess(op);
    if (access != wanted)
      return op->emitOpError("has access relation ")
             << access << ", expected " << wanted;
    return success();
  }
};

} // namespace
