// SPDX-License-Identifier: Apache-2.0
/// \file
/// Products of the chosen experts, and of those that every token takes.

#include "ScalarRegion.h"
#include "StageEmitter.h"

using namespace mlir;
using namespace mega;

/// "ids[row]" for routed rows, the shared expert's number after them.
static std::string expertOf(const std::string &ids, const std::string &row,
                            int64_t routed, int64_t stack, int64_t rows) {
  if (rows == routed)
    return ids + "[" + row + "]";
  return "(" + row + " < " + str(routed) + " ? " + ids + "[" + row +
         "] : " + str(stack - routed) + " + " + row + ")";
}

std::string StageEmitter::gateUpAddress(ExpertGateUpOp op, StringRef ids) {
  PackedWeight weight = model.packed(op.getGate());
  int64_t stack = cast<QuantType>(model.weightType(op.getGate())).getStack();
  int64_t routed = typeOf(op.getIds()).getNumElements();
  int64_t rows = typeOf(op.getResult()).getDimSize(0);
  return "          const int row = tile / " + str(weight.tiles()) +
         ", strip = tile % " + str(weight.tiles()) +
         ";\n          const int expert = " +
         expertOf(ids.str(), "row", routed, stack, rows) +
         ";\n          return " +
         unitAt(op.getGate(), "(expert * " + str(weight.tiles()) +
                                  " + strip) * " + str(weight.steps()) +
                                  " + step") +
         ";\n";
}

UnitList StageEmitter::expertList(Operation *op) const {
  if (auto gateUp = dyn_cast<ExpertGateUpOp>(op)) {
    PackedWeight weight = model.packed(gateUp.getGate());
    int64_t rows = typeOf(gateUp.getResult()).getDimSize(0);
    return unitList(rows * weight.tiles(), weight.steps(), weight.steps(),
                    weight.sets, /*split=*/false);
  }
  auto down = cast<ExpertDownOp>(op);
  PackedWeight weight = model.packed(down.getDown());
  int64_t rows = typeOf(down.getHidden()).getDimSize(0);
  return unitList(weight.tiles(), rows * weight.steps(), weight.steps(),
                  weight.sets, down.getTilingAttr().getSplit());
}

void StageEmitter::emitExpertStream(Operation *op) {
  if (auto gateUp = dyn_cast<ExpertGateUpOp>(op)) {
    if (values[gateUp.getIds()].shared.empty())
      return; // the router has not chosen yet
    emitStream(expertList(op),
               gateUpAddress(gateUp, values[gateUp.getIds()].shared));
    streamedFor = gateUp.getX();
    return;
  }
  auto down = cast<ExpertDownOp>(op);
  if (values[down.getIds()].shared.empty())
    return;
  emitStream(expertList(op), downAddress(down, values[down.getIds()].shared));
  streamedFor = down.getHidden();
}

void StageEmitter::emitExpertGateUp(ExpertGateUpOp op) {
  PackedWeight weight = model.packed(op.getGate());
  int64_t rows = typeOf(op.getResult()).getDimSize(0);
  int64_t columns = typeOf(op.getResult()).getDimSize(1);
  weightBytes += rows * weight.matrixBytes();
  const PrologueValue x = values[op.getX()];
  SmallVector<StoreOp> stores;
  collectStores(op.getResult(), stores);
  for (StoreOp store : stores)
    pointerTo(store.getBuffer());
  std::string activation = fresh("activation");
  os << "  const auto " << activation << " = "
     << emitScalarLambda(op.getActivation(), "  ") << ";\n";
  UnitList list = expertList(op);
  emitGemv(list, /*scaled=*/false, x, "1.0f");
  os << "          if (row >= " << weight.rowsPerTile() << ") return;\n"
     << "          const int column = tile % " << weight.tiles() << " * "
     << weight.rowsPerTile() << " + row;\n"
     << "          const int i = tile / " << weight.tiles() << " * " << columns
     << " + column;\n";
  TileValue tile;
  tile.index = "i";
  tile.name = fresh("v");
  if (columns % weight.rowsPerTile() != 0)
    tile.guard = "column < " + str(columns);
  os << "          const float " << tile.name << " = "
     << rounded(op.getResult(), activation + "(sums[row], sums[row + " +
                                    str(weight.rowsPerTile()) + "])")
     << ";\n";
  emitEpilogue(op.getResult(), tile, "          ");
  os << "        });\n";
}

std::string StageEmitter::downAddress(ExpertDownOp op, StringRef ids) {
  PackedWeight weight = model.packed(op.getDown());
  int64_t stack = cast<QuantType>(model.weightType(op.getDown())).getStack();
  int64_t routed = typeOf(op.getIds()).getNumElements();
  int64_t rows = typeOf(op.getHidden()).getDimSize(0);
  return "          const int row = step / " + str(weight.steps()) +
         ", inner = step % " + str(weight.steps()) +
         ";\n          const int expert = " +
         expertOf(ids.str(), "row", routed, stack, rows) +
         ";\n          return " +
         unitAt(op.getDown(), "(expert * " + str(weight.tiles()) +
                                  " + tile) * " + str(weight.steps()) +
                                  " + inner") +
         ";\n";
}

void StageEmitter::emitExpertDown(ExpertDownOp op) {
  PackedWeight weight = model.packed(op.getDown());
  int64_t routed = typeOf(op.getIds()).getNumElements();
  int64_t rows = typeOf(op.getHidden()).getDimSize(0);
  bool split = op.getTilingAttr().getSplit();
  weightBytes += rows * weight.matrixBytes();
  const PrologueValue x = values[op.getHidden()];
  std::string gates = values[op.getWeights()].shared;
  SmallVector<StoreOp> stores;
  collectStores(op.getResult(), stores);
  for (StoreOp store : stores)
    pointerTo(store.getBuffer());
  UnitList list = expertList(op);
  emitGemv(list, /*scaled=*/true, x,
           rows == routed
               ? gates + "[row]"
               : "row < " + str(routed) + " ? " + gates + "[row] : 1.0f");
  os << "          const int i = tile * " << kUnitOutputs << " + row;\n";
  Value result = op.getResult();
  if (split) {
    emitPartialStore(result, "tile", "i", "sums[row]",
                     model.partialSums(storeOf(result).getBuffer()),
                     "          ");
  } else {
    TileValue tile;
    tile.index = "i";
    tile.name = fresh("v");
    if (typeOf(result).getNumElements() % kUnitOutputs != 0)
      tile.guard = "i < " + str(typeOf(result).getNumElements());
    tile.at = [=](const std::string &i) {
      return rounded(result,
                     "sums[(" + i + ") - tile * " + str(kUnitOutputs) + "]");
    };
    os << "          const float " << tile.name << " = "
       << rounded(result, "sums[row]") << ";\n";
    emitEpilogue(result, tile, "          ");
  }
  os << "        });\n";
}
