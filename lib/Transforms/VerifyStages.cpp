// SPDX-License-Identifier: Apache-2.0
/// \file
/// The level-1 boundary: every stage is partitioned.

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
    bool transfer = isa<LoadOp, LoadSumOp, StoreOp>(op);
    if (transfer && !op->hasAttrOfType<AccessAttr>("access"))
      return op->emitOpError("has no access relation; -mega-partition should "
                             "have set it");
    return success();
  }
};

} // namespace
