// SPDX-License-Identifier: Apache-2.0
/// \file
/// Breaks mega.experts and mega.latent_attention into single-anchor parts.

#include "mega/IR/LatentHeads.h"
#include "mega/Transforms/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/PatternMatch.h"

namespace mega {
#define GEN_PASS_DEF_DECOMPOSEPASS
#include "mega/Transforms/Passes.h.inc"
} // namespace mega

using namespace mlir;
using namespace mega;

namespace {

QuantType quantType(Operation *op, FlatSymbolRefAttr name) {
  return cast<QuantType>(
      SymbolTable::lookupNearestSymbolFrom<WeightOp>(op, name).getType());
}

void decompose(ExpertsOp op, IRRewriter &rewriter) {
  rewriter.setInsertionPoint(op);
  QuantType gate = quantType(op, op.getGateAttr());
  int64_t rows = cast<RankedTensorType>(op.getIds().getType()).getDimSize(0);
  if (op.getSharedGateAttr())
    rows += quantType(op, op.getSharedGateAttr()).getStack();
  auto hiddenType = RankedTensorType::get({rows, gate.getOutFeatures()},
                                          rewriter.getF32Type());
  auto gateUp = ExpertGateUpOp::create(
      rewriter, op.getLoc(), hiddenType, op.getX(), op.getIds(),
      op.getGateAttr(), op.getUpAttr(), op.getSharedGateAttr(),
      op.getSharedUpAttr(), /*tiling=*/TilingAttr());
  rewriter.inlineRegionBefore(op.getActivation(), gateUp.getActivation(),
                              gateUp.getActivation().end());
  auto down = ExpertDownOp::create(
      rewriter, op.getLoc(), op.getType(), gateUp.getResult(), op.getIds(),
      op.getWeights(), op.getDownAttr(), op.getSharedDownAttr(),
      /*tiling=*/TilingAttr());
  rewriter.replaceOp(op, down);
}

void decompose(LatentAttentionOp op, TargetAttr target, IRRewriter &rewriter) {
  rewriter.setInsertionPoint(op);
  Type f32 = rewriter.getF32Type();
  QuantType weight = quantType(op, op.getWeightAttr());
  int64_t heads = cast<RankedTensorType>(op.getQ().getType()).getDimSize(0);
  int64_t keys = weight.getOutFeatures() / heads -
                 cast<RankedTensorType>(op.getType()).getDimSize(1);
  int64_t latent = weight.getInFeatures();
  // Each group of heads has its own CTAs, which share out the caches' rows.
  int64_t groups = llvm::divideCeil(heads, kLatentHeads);
  int64_t chunks = std::max<int64_t>(target.getCtas() / groups, 1);
  auto query = LatentQueryOp::create(
      rewriter, op.getLoc(), RankedTensorType::get({heads, latent}, f32),
      op.getQ(), op.getWeightAttr(), rewriter.getI64IntegerAttr(keys),
      /*tiling=*/TilingAttr());
  auto perHead = RankedTensorType::get({heads, chunks}, f32);
  auto scores = LatentScoresOp::create(
      rewriter, op.getLoc(), perHead, perHead,
      RankedTensorType::get({chunks, heads, latent}, f32), query.getResult(),
      op.getQ(), op.getPosition(), op.getLatentAttr(), op.getRopeAttr(),
      op.getScaleAttr(), /*tiling=*/TilingAttr());
  auto value = LatentValueOp::create(rewriter, op.getLoc(), op.getType(),
                                     scores.getMaximum(), scores.getSum(),
                                     scores.getContext(), op.getWeightAttr(),
                                     /*tiling=*/TilingAttr());
  rewriter.replaceOp(op, value);
}

struct DecomposePass : public mega::impl::DecomposePassBase<DecomposePass> {
  using Base::Base;

  void runOnOperation() override {
    ModuleOp module = getOperation();
    auto target = module->getAttrOfType<TargetAttr>(kTargetAttrName);
    IRRewriter rewriter(&getContext());
    SmallVector<Operation *> whole;
    module.walk([&](Operation *op) {
      if (isa<ExpertsOp, LatentAttentionOp>(op))
        whole.push_back(op);
    });
    for (Operation *op : whole) {
      if (auto experts = dyn_cast<ExpertsOp>(op))
        decompose(experts, rewriter);
      else
        decompose(cast<LatentAttentionOp>(op), target, rewriter);
    }
    for (BlockOp block : module.getOps<BlockOp>())
      eraseUnused(block, rewriter);
  }

private:
  static void eraseUnused(BlockOp block, IRRewriter &rewriter) {
    for (Operation &op :
         llvm::make_early_inc_range(llvm::reverse(block.getBody().front())))
      if (isOpTriviallyDead(&op))
        rewriter.eraseOp(&op);
  }
};

} // namespace
