// SPDX-License-Identifier: Apache-2.0
/// \file
/// The level-0 boundary: what the compiler accepts.

#include "mega/Transforms/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"

namespace mega {
#define GEN_PASS_DEF_VERIFYBLOCKPASS
#include "mega/Transforms/Passes.h.inc"
} // namespace mega

using namespace mlir;
using namespace mega;

namespace {

struct VerifyBlockPass : public mega::impl::VerifyBlockPassBase<VerifyBlockPass> {
  using Base::Base;

  void runOnOperation() override {
    if (failed(check(getOperation())))
      signalPassFailure();
  }

private:
  static LogicalResult check(ModuleOp module) {
    if (!module->getAttrOfType<TargetAttr>(kTargetAttrName))
      return module.emitError("module has no '")
             << kTargetAttrName
             << "' attribute, expected a #mega.target (see megalithc --arch)";
    auto blocks = llvm::to_vector(module.getOps<BlockOp>());
    if (blocks.size() != 1)
      return module.emitError("module has ")
             << blocks.size() << " mega.block ops, expected 1";
    WalkResult result = blocks.front().walk([](Operation *op) {
      return failed(checkOp(op)) ? WalkResult::interrupt()
                                 : WalkResult::advance();
    });
    return success(!result.wasInterrupted());
  }

  static LogicalResult checkOp(Operation *op) {
    if (auto attention = dyn_cast<LatentAttentionOp>(op);
        attention && !attention.getAbsorb())
      return op->emitOpError(
          "is not marked 'absorb', expected the relaxation: the compiler has "
          "no lowering that keeps the rounding of each cached row's keys and "
          "values");
    if (isa<AnchorOpInterface>(op) && !isa<LinearOp, DeltaRuleOp>(op))
      return op->emitOpError("belongs to level 1, expected level-0 ops only");
    if (isa<LoadOp, LoadSumOp, StoreOp, AllocOp, StageOp>(op))
      return op->emitOpError("belongs to level 1, expected level-0 ops only");
    return checkElementTypes(op);
  }

  /// Activations that tensor-core tiles read must be bf16 or f32; the rest of
  /// the device code is written for these element types.
  static LogicalResult checkElementTypes(Operation *op) {
    if (auto linear = dyn_cast<LinearOp>(op)) {
      auto weight = SymbolTable::lookupNearestSymbolFrom<WeightOp>(
          op, linear.getWeightAttr());
      auto x = cast<RankedTensorType>(linear.getX().getType());
      if (!isa<QuantType>(weight.getType()) &&
          (!x.getElementType().isBF16() ||
           !cast<RankedTensorType>(weight.getType())
                .getElementType()
                .isBF16() ||
           x.getNumElements() % 8 != 0))
        return op->emitOpError("multiplies ")
               << x << " by @" << linear.getWeight() << " of type "
               << weight.getType()
               << ", expected bf16 on both sides and a multiple of 8 inputs";
    }
    if (auto experts = dyn_cast<ExpertsOp>(op)) {
      auto x = cast<RankedTensorType>(experts.getX().getType());
      if (!x.getElementType().isBF16())
        return op->emitOpError("reads ") << x << ", expected bf16";
    }
    if (auto attention = dyn_cast<LatentAttentionOp>(op)) {
      auto q = cast<RankedTensorType>(attention.getQ().getType());
      auto weight = SymbolTable::lookupNearestSymbolFrom<WeightOp>(
          op, attention.getWeightAttr());
      auto quant = cast<QuantType>(weight.getType());
      auto o = cast<RankedTensorType>(attention.getResult().getType());
      int64_t values = o.getDimSize(1);
      int64_t keys = quant.getOutFeatures() / o.getDimSize(0) - values;
      if (!q.getElementType().isBF16() || keys % kUnitOutputs != 0 ||
          values % kUnitOutputs != 0)
        return op->emitOpError("has ")
               << keys << " key and " << values << " value elements a head and "
               << "queries of type " << q
               << ", expected multiples of " << kUnitOutputs << " and bf16";
    }
    return success();
  }
};

} // namespace
