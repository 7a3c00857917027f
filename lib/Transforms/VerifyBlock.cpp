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

struct VerifyBlockPass
    : public mega::impl::VerifyBlockPassBase<VerifyBlockPass> {
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
    for (Operation &op : module.getBodyRegion().front())
      if (!isa<WeightOp, StateOp, BlockOp>(op))
        return op.emitOpError("stands beside the mega.block, expected only "
                              "mega.weight and mega.state there");
    WalkResult result = blocks.front().walk([](Operation *op) {
      return failed(checkOp(op)) ? WalkResult::interrupt()
                                 : WalkResult::advance();
    });
    if (result.wasInterrupted() || failed(checkStates(blocks.front())))
      return failure();
    return checkPacking(blocks.front());
  }

  /// One op updates a state, before any op reads it: what a step does to a
  /// state must not depend on the order in which stages run.
  static LogicalResult checkStates(BlockOp block) {
    llvm::DenseMap<StringAttr, Operation *> writers;
    WalkResult result = block.walk([&](Operation *op) {
      if (!isa<ShortConvOp, DeltaRuleOp, CacheAppendOp, LatentAttentionOp>(op))
        return WalkResult::advance();
      if (auto attention = dyn_cast<LatentAttentionOp>(op)) {
        for (FlatSymbolRefAttr state :
             {attention.getLatentAttr(), attention.getRopeAttr()})
          if (!writers.contains(state.getAttr())) {
            op->emitOpError("reads cache ")
                << state
                << ", expected an earlier mega.cache_append of this step's row";
            return WalkResult::interrupt();
          }
        return WalkResult::advance();
      }
      auto state = op->getAttrOfType<FlatSymbolRefAttr>("state");
      auto [it, fresh] = writers.try_emplace(state.getAttr(), op);
      if (fresh)
        return WalkResult::advance();
      InFlightDiagnostic diag = op->emitOpError("updates state ")
                                << state << " again, expected one update a "
                                << "step";
      diag.attachNote(it->second->getLoc()) << "the first update";
      return WalkResult::interrupt();
    });
    return success(!result.wasInterrupted());
  }

  /// Weights that one stage reads are packed together, once: every op that
  /// reads one of them must read the same ones.
  static LogicalResult checkPacking(BlockOp block) {
    llvm::DenseMap<StringAttr, std::pair<ArrayAttr, Operation *>> packed;
    WalkResult result = block.walk([&](Operation *op) {
      for (ArrayAttr together : packedTogether(op))
        for (auto name : together.getAsRange<FlatSymbolRefAttr>()) {
          auto [it, fresh] = packed.try_emplace(name.getAttr(), together, op);
          if (fresh || it->second.first == together)
            continue;
          InFlightDiagnostic diag = op->emitOpError("packs weight ")
                                    << name << " with " << together
                                    << ", expected " << it->second.first
                                    << " as another op does";
          diag.attachNote(it->second.second->getLoc()) << "the other op";
          return WalkResult::interrupt();
        }
      return WalkResult::advance();
    });
    return success(!result.wasInterrupted());
  }

  /// The sets of quantised weights that `op` reads as one.
  static SmallVector<ArrayAttr> packedTogether(Operation *op) {
    auto set = [&](ArrayRef<FlatSymbolRefAttr> names) {
      SmallVector<Attribute> present;
      for (FlatSymbolRefAttr name : names)
        if (name)
          present.push_back(name);
      return ArrayAttr::get(op->getContext(), present);
    };
    if (auto experts = dyn_cast<ExpertsOp>(op))
      return {set({experts.getGateAttr(), experts.getUpAttr(),
                   experts.getSharedGateAttr(), experts.getSharedUpAttr()}),
              set({experts.getDownAttr(), experts.getSharedDownAttr()})};
    if (isa<LinearOp, LatentAttentionOp>(op))
      return {set({op->getAttrOfType<FlatSymbolRefAttr>("weight")})};
    return {};
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
    if (isa<BlockOp>(op->getParentOp()) && !isa<MegaDialect>(op->getDialect()))
      return op->emitOpError("stands in a mega.block, expected mega ops only");
    for (Type type : op->getResultTypes())
      if (auto tensor = dyn_cast<RankedTensorType>(type);
          tensor && tensor.getRank() == 0)
        return op->emitOpError("has a result of type ")
               << tensor << ", expected a tensor of rank 1 or more";
    return checkElementTypes(op);
  }

  template <typename T>
  static T typeOf(Operation *op, FlatSymbolRefAttr weight) {
    return cast<T>(
        SymbolTable::lookupNearestSymbolFrom<WeightOp>(op, weight).getType());
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
      if (experts.getSharedDownAttr()) {
        auto down = typeOf<QuantType>(op, experts.getDownAttr());
        auto shared = typeOf<QuantType>(op, experts.getSharedDownAttr());
        if (down.getGroup() != shared.getGroup())
          return op->emitOpError("has shared down ")
                 << shared << " beside down " << down << ", expected one group";
      }
    }
    if (auto conv = dyn_cast<ShortConvOp>(op)) {
      auto x = cast<RankedTensorType>(conv.getX().getType());
      auto weight = typeOf<RankedTensorType>(op, conv.getWeightAttr());
      if (!x.getElementType().isBF16() || !weight.getElementType().isBF16())
        return op->emitOpError("convolves ")
               << x << " with @" << conv.getWeight() << " of type " << weight
               << ", expected bf16 on both sides";
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
               << "queries of type " << q << ", expected multiples of "
               << kUnitOutputs << " and bf16";
    }
    return success();
  }
};

} // namespace
