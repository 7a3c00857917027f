// SPDX-License-Identifier: Apache-2.0
/// \file
/// Gathers weights, states and partial-sum layouts of a kernel.

#include "KernelModel.h"

#include "mega/Target/CUDA/Emit.h"

#include "mlir/IR/BuiltinOps.h"

using namespace mlir;
using namespace mega;

SmallVector<StateOp> mega::kernelStates(KernelOp kernel) {
  auto module = kernel->getParentOfType<ModuleOp>();
  return llvm::to_vector(module.getOps<StateOp>());
}

KernelModel::KernelModel(KernelOp kernel, RingShape ring)
    : kernel(kernel), target(kernel.getTarget()), ring(ring) {
  for (auto region : kernel.getWeightLayout().getAsRange<DictionaryAttr>()) {
    auto first = cast<StringAttr>(
        cast<ArrayAttr>(region.get("sources")).getValue().front());
    offsets[first] = cast<IntegerAttr>(region.get("offset")).getInt();
    pairs[first] =
        cast<StringAttr>(region.get("layout")).getValue().ends_with("_pair");
  }
  for (auto [index, state] : llvm::enumerate(kernelStates(kernel)))
    stateIndices[state.getSymName()] = index;
  for (auto &entry : offsets)
    if (isa<QuantType>(weightType(entry.getKey())))
      unitBytes = std::max(unitBytes, packed(entry.getKey()).unitBytes());
}

int64_t KernelModel::rawOffset(StringRef weight) const {
  return offsets.lookup(weight);
}

Type KernelModel::weightType(StringRef weight) const {
  return SymbolTable::lookupNearestSymbolFrom<WeightOp>(
             kernel, StringAttr::get(target.getContext(), weight))
      .getType();
}

PackedWeight KernelModel::packed(StringRef weight) const {
  auto type = cast<QuantType>(weightType(weight));
  PackedWeight result;
  result.offset = offsets.lookup(weight);
  result.inputs = type.getInFeatures();
  result.outputs = type.getOutFeatures();
  result.sets = kUnitInputs / std::min(type.getGroup(), kUnitInputs);
  result.pair = pairs.lookup(weight);
  return result;
}

bool KernelModel::usesRing(StageOp stage) {
  return !quantLinears(stage).empty() ||
         llvm::any_of(stage.getBody().front(),
                      llvm::IsaPred<ExpertGateUpOp, ExpertDownOp>);
}

int64_t KernelModel::stateIndex(StringRef state) const {
  return stateIndices.lookup(state);
}

static bool touches(Operation *op, StringRef state) {
  return llvm::any_of(op->getAttrs(), [&](NamedAttribute attr) {
    auto symbol = dyn_cast<FlatSymbolRefAttr>(attr.getValue());
    return symbol && symbol.getValue() == state;
  });
}

bool KernelModel::isPrivate(StringRef state, StageOp stage) const {
  return !KernelOp(kernel)
              ->walk([&](Operation *op) {
                return touches(op, state) &&
                               op->getParentOfType<StageOp>() != stage
                           ? WalkResult::interrupt()
                           : WalkResult::advance();
              })
              .wasInterrupted();
}

bool KernelModel::isTouchedJustBefore(StringRef state, StageOp stage) const {
  auto phase = stage->getParentOfType<PhaseOp>();
  return KernelOp(kernel)
      ->walk([&](PhaseOp other) {
        if (other.getIndex() + 1 != phase.getIndex())
          return WalkResult::advance();
        return other->walk([&](Operation *op) {
          return touches(op, state) ? WalkResult::interrupt()
                                    : WalkResult::advance();
        });
      })
      .wasInterrupted();
}

RankedTensorType KernelModel::stateType(StringRef state) const {
  return SymbolTable::lookupNearestSymbolFrom<StateOp>(
             kernel, StringAttr::get(target.getContext(), state))
      .getTensorType();
}

SmallVector<LinearOp> KernelModel::quantLinears(StageOp stage) {
  SmallVector<LinearOp> linears;
  for (LinearOp linear : stage.getBody().getOps<LinearOp>())
    if (linear.getTileExtent() == kUnitOutputs)
      linears.push_back(linear);
  return linears;
}

PartialSums KernelModel::partialSums(Value buffer) const {
  StoreOp store;
  for (Operation *user : buffer.getUsers())
    if (auto candidate = dyn_cast<StoreOp>(user))
      store = candidate;
  PartialSums sums;
  sums.slots = cast<BufferType>(buffer.getType()).getShape().front();
  Operation *anchor = store.getValue().getDefiningOp();
  if (auto down = dyn_cast<ExpertDownOp>(anchor)) {
    auto hidden = cast<RankedTensorType>(down.getHidden().getType());
    sums.tiles = down.getTileCount();
    int64_t steps = packed(down.getDown()).steps();
    sums.bursts = hidden.getDimSize(0) * steps / burstUnits(steps);
  } else if (auto linear = dyn_cast<LinearOp>(anchor)) {
    for (LinearOp other : quantLinears(store->getParentOfType<StageOp>())) {
      if (other == linear)
        sums.firstTile = sums.tiles;
      sums.tiles += other.getTileCount();
    }
    int64_t steps = packed(linear.getWeight()).steps();
    sums.bursts = steps / burstUnits(steps);
  }
  return sums;
}
