// SPDX-License-Identifier: Apache-2.0
/// \file
/// Counts a stage's work.

#include "mega/Analysis/StageWork.h"
#include "mega/IR/LatentHeads.h"

#include "mlir/IR/BuiltinOps.h"
#include "llvm/ADT/TypeSwitch.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace mega;
using llvm::divideCeil;

static RankedTensorType tensorOf(Value value) {
  return cast<RankedTensorType>(value.getType());
}

static int64_t bytesOf(RankedTensorType type) {
  return type.getNumElements() * type.getElementTypeBitWidth() / 8;
}

namespace {

/// Units that an anchor walks: `tiles` of them, `steps` each.
struct UnitList {
  int64_t tiles = 0, steps = 0, unitBytes = 0;
};

class StageCounter {
public:
  StageCounter(StageOp stage, const WorkSetting &setting)
      : stage(stage), setting(setting) {
    work.tiles = stage.getTiles().value_or(0);
  }

  StageWork count() {
    for (Operation &op : stage.getBody().front()) {
      countUnits(&op);
      countStates(&op);
      work.norms += isa<RmsNormOp>(op);
      work.routers += isa<RouterOp>(op);
      if (isa<LoadOp, LoadSumOp>(op))
        work.fetchedBytes += fetched(&op);
    }
    finishUnits();
    return work;
  }

private:
  QuantType quantOf(StringRef weight) const {
    auto op = SymbolTable::lookupNearestSymbolFrom<WeightOp>(
        stage, StringAttr::get(stage.getContext(), weight));
    return dyn_cast<QuantType>(op.getType());
  }

  /// A list of tiles of `rows` outputs and all inputs of a weight.
  UnitList listOf(QuantType type, int64_t matrices, int64_t outputs,
                  int64_t rows, int64_t inputs) const {
    int64_t sets = kUnitInputs / std::min(type.getGroup(), kUnitInputs);
    return {matrices * int64_t(divideCeil(outputs, rows)),
            int64_t(divideCeil(inputs, kUnitInputs)), 1024 + 64 * sets};
  }

  void countUnits(Operation *op) {
    TypeSwitch<Operation *>(op)
        .Case([&](LinearOp linear) {
          if (QuantType type = quantOf(linear.getWeight())) {
            addUnits(op, listOf(type, 1, type.getOutFeatures(), kUnitOutputs,
                                type.getInFeatures()));
            return;
          }
          work.plainBytes += bytesOf(cast<RankedTensorType>(
              SymbolTable::lookupNearestSymbolFrom<WeightOp>(
                  op, linear.getWeightAttr())
                  .getType()));
          addTiles(linear.getTileCount(), 1);
        })
        .Case([&](ExpertGateUpOp gateUp) {
          QuantType type = quantOf(gateUp.getGate());
          addUnits(op, listOf(type, tensorOf(gateUp.getResult()).getDimSize(0),
                              type.getOutFeatures(), kUnitOutputs / 2,
                              type.getInFeatures()));
        })
        .Case([&](ExpertDownOp down) {
          QuantType type = quantOf(down.getDown());
          UnitList list = listOf(type, 1, type.getOutFeatures(), kUnitOutputs,
                                 type.getInFeatures());
          // A tile of the sum walks every expert.
          list.steps *= tensorOf(down.getHidden()).getDimSize(0);
          addUnits(op, list);
        })
        .Case([&](LatentQueryOp query) {
          auto shape = tensorOf(query.getResult()).getShape();
          QuantType type = quantOf(query.getWeight());
          UnitList list = listOf(type, shape[0], shape[1], kUnitInputs,
                                 query.getKeys() * kUnitInputs / kUnitOutputs);
          addUnits(op, list);
        })
        .Case([&](LatentValueOp value) {
          auto shape = tensorOf(value.getResult()).getShape();
          auto context = tensorOf(value.getContext()).getShape();
          QuantType type = quantOf(value.getWeight());
          UnitList list = listOf(type, shape[0], context[2], kUnitInputs,
                                 shape[1] * kUnitInputs / kUnitOutputs);
          addUnits(op, list);
        })
        .Case([&](AnchorOpInterface anchor) {
          addTiles(anchor.getTileCount(), 1);
        });
  }

  void addUnits(Operation *op, const UnitList &list) {
    lists.push_back(list);
    work.split |= cast<AnchorOpInterface>(op).getTilingAttr() &&
                  cast<AnchorOpInterface>(op).getTilingAttr().getSplit() &&
                  !isa<LatentValueOp>(op);
  }

  /// Tiles without units.
  void addTiles(int64_t tiles, int64_t weight) {
    busy += tiles * weight;
    spent += int64_t(divideCeil(tiles, setting.ctas)) * setting.ctas * weight;
  }

  /// All lists with units are one list for the CTAs to share out.
  void finishUnits() {
    int64_t tiles = 0, steps = 0;
    for (const UnitList &list : lists) {
      tiles += list.tiles;
      steps = std::max(steps, list.steps);
      work.units += list.tiles * list.steps;
      work.unitBytes = std::max(work.unitBytes, list.unitBytes);
    }
    if (work.units == 0) {
      work.waveEfficiency = spent == 0 ? 1 : double(busy) / double(spent);
      return;
    }
    work.largestUnits =
        work.split ? divideCeil(work.units, setting.ctas)
                   : std::min<int64_t>(divideCeil(tiles, setting.ctas) * steps,
                                       work.units);
    work.waveEfficiency =
        double(work.units) / double(work.largestUnits * setting.ctas);
  }

  void countStates(Operation *op) {
    auto typeOf = [&](FlatSymbolRefAttr state) {
      return SymbolTable::lookupNearestSymbolFrom<StateOp>(op, state)
          .getTensorType();
    };
    auto rowBytes = [&](RankedTensorType type) {
      int64_t bytes = type.getElementTypeBitWidth() / 8;
      for (int64_t dim : type.getShape())
        bytes *= ShapedType::isDynamic(dim) ? 1 : dim;
      return bytes;
    };
    TypeSwitch<Operation *>(op)
        .Case<ShortConvOp, DeltaRuleOp>([&](auto update) {
          work.stateBytes += 2 * rowBytes(typeOf(update.getStateAttr()));
        })
        .Case([&](CacheAppendOp append) {
          work.stateBytes += rowBytes(typeOf(append.getStateAttr()));
        })
        .Case([&](LatentScoresOp scores) {
          RankedTensorType latent = typeOf(scores.getLatentAttr());
          RankedTensorType rope = typeOf(scores.getRopeAttr());
          int64_t rows = setting.context + 1;
          work.cacheBytes += rows * (rowBytes(latent) + rowBytes(rope));
          int64_t heads = tensorOf(scores.getAbsorbed()).getDimSize(0);
          int64_t columns =
              2 * latent.getShape().back() + rope.getShape().back();
          int64_t groups = divideCeil(heads, kLatentHeads);
          int64_t chunks =
              std::clamp<int64_t>(setting.ctas / groups, 1,
                                  tensorOf(scores.getContext()).getDimSize(0));
          work.cacheMacs += int64_t(divideCeil(rows, chunks)) *
                            std::min(heads, kLatentHeads) * columns;
        });
  }

  /// Bytes that the CTA which has most of the load's buffer reads.
  int64_t fetched(Operation *load) const {
    auto buffer = cast<BufferType>(load->getOperand(0).getType());
    int64_t whole = buffer.getByteSize();
    // Owners of elements take no more than their share; a join's tiles take
    // the buffer apart.
    bool shared = llvm::all_of(load->getResult(0).getUsers(),
                               llvm::IsaPred<LatentValueOp>) ||
                  llvm::all_of(stage.getBody().getOps<AnchorOpInterface>(),
                               [](AnchorOpInterface anchor) {
                                 return isa<ElementwiseOp>(anchor);
                               });
    if (shared)
      return divideCeil(whole, setting.ctas);
    auto access = load->getAttrOfType<AccessAttr>("access");
    if (!access || !access.getMap().getValue().isFunctionOfDim(0))
      return whole;
    int64_t elements = 1;
    for (int64_t extent : access.getExtents())
      elements *= std::max<int64_t>(extent, 1);
    int64_t tiles = divideCeil(std::max<int64_t>(work.tiles, 1), setting.ctas);
    int64_t elementBytes = buffer.getElementType().getIntOrFloatBitWidth() / 8;
    return std::min(whole, tiles * elements * elementBytes);
  }

  mutable StageOp stage;
  WorkSetting setting;
  StageWork work;
  SmallVector<UnitList> lists;
  int64_t busy = 0, spent = 0;
};

} // namespace

StageWork mega::measureStage(StageOp stage, const WorkSetting &setting) {
  return StageCounter(stage, setting).count();
}
