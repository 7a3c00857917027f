// SPDX-License-Identifier: Apache-2.0
/// \file
/// Gives every anchor of a program its tiles and every load and store the
/// relation from tiles to elements.

#include "mega/Analysis/TileAccess.h"
#include "mega/Transforms/Passes.h"

#include "mlir/IR/Builders.h"
#include "llvm/ADT/TypeSwitch.h"

namespace mega {
#define GEN_PASS_DEF_PARTITIONPASS
#include "mega/Transforms/Passes.h.inc"
} // namespace mega

using namespace mlir;
using namespace mega;

namespace {

struct PartitionPass : public mega::impl::PartitionPassBase<PartitionPass> {
  using Base::Base;

  void runOnOperation() override {
    getOperation().walk([](StageOp stage) { partition(stage); });
  }

private:
  static void partition(StageOp stage) {
    MLIRContext *context = stage.getContext();
    int64_t next = 0;
    for (Operation &op : stage.getBody().front())
      if (auto anchor = dyn_cast<AnchorOpInterface>(op)) {
        TilingAttr old = anchor.getTilingAttr();
        int64_t count = anchor.getTileCount();
        anchor.setTilingAttr(TilingAttr::get(context, next, count,
                                             anchor.getTileExtent(),
                                             old && old.getSplit()));
        next += count;
      }
    OpBuilder builder(context);
    stage.setTilesAttr(builder.getI64IntegerAttr(next));

    for (Operation &op : stage.getBody().front())
      TypeSwitch<Operation *>(&op).Case<LoadOp, LoadSumOp, StoreOp>(
          [](auto transfer) {
            transfer.setAccessAttr(deriveAccess(transfer));
          });
  }
};

} // namespace
