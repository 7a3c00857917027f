// SPDX-License-Identifier: Apache-2.0
/// \file
/// Signals, waits and resets: what orders stages of one phase.
///
/// A CTA walks the stages of a phase in order. It waits for all tiles that its
/// own need before the first of them, and signals once its last is done; that
/// is coarser than the IR asks and never circular, since producers stand first.

#include "StageEmitter.h"

#include "mlir/IR/AffineExpr.h"

using namespace mlir;
using namespace mega;

/// C text of an expression in the tile number, which is never negative.
static std::string toText(AffineExpr expr, StringRef tile) {
  if (auto constant = dyn_cast<AffineConstantExpr>(expr))
    return str(constant.getValue());
  if (isa<AffineDimExpr>(expr))
    return tile.str();
  auto binary = cast<AffineBinaryOpExpr>(expr);
  std::string left = toText(binary.getLHS(), tile);
  std::string right = toText(binary.getRHS(), tile);
  switch (expr.getKind()) {
  case AffineExprKind::Add:
    return "(" + left + " + " + right + ")";
  case AffineExprKind::Mul:
    return left + " * " + right;
  case AffineExprKind::Mod:
    return left + " % " + right;
  case AffineExprKind::FloorDiv:
    return left + " / " + right;
  default:
    return "((" + left + " + " + right + " - 1) / " + right + ")";
  }
}

std::string StageEmitter::counterAddress(Value counters, AffineMap map,
                                         StringRef tile) {
  auto op = counters.getDefiningOp<CountersOp>();
  return "reinterpret_cast<mega::u32 *>(" +
         arguments.add(op.getName(), PhaseArguments::From::Workspace,
                       *op.getOffset()) +
         ") + (" + toText(map.getResult(0), tile) + ") * " +
         str(kCounterStride / 4);
}

StageEmitter::OwnTiles StageEmitter::ownTiles(Operation *anchor) {
  auto tiled = cast<AnchorOpInterface>(anchor);
  auto stage = anchor->getParentOfType<StageOp>();
  int64_t count = tiled.getTilingAttr().getCount();
  bool split = tiled.getTilingAttr().getSplit();
  OwnTiles own{count, 0, 1, 1, {}};
  auto ownRun = [&](const UnitList &list) {
    own.parts = split ? list.bursts() : 1;
    own.steps = split ? list.units : 1;
    own.range = split ? runOf(list) : ownOf(list.tiles);
  };
  if (auto linear = dyn_cast<LinearOp>(anchor)) {
    auto linears = KernelModel::quantLinears(stage);
    if (!llvm::is_contained(linears, linear)) {
      own.range = ownOfReversed(count);
      return own;
    }
    UnitList list = linearList(linears);
    for (LinearOp other : linears) {
      if (other == linear)
        break;
      own.first += other.getTileCount();
    }
    ownRun(list);
  } else if (isa<ExpertGateUpOp, ExpertDownOp>(anchor)) {
    ownRun(expertList(anchor));
  } else if (isa<ElementwiseOp>(anchor)) {
    own.range = ownOf(count);
  }
  return own;
}

void StageEmitter::emitWholeWaits(StageOp stage) {
  for (WaitOp wait : stage.getBody().getOps<WaitOp>())
    if (wait.isWholeStage()) {
      getReady();
      os << "  mega::Counter::wait("
         << counterAddress(wait.getCounters(), wait.getMap(), "0") << ", "
         << wait.getTarget() << ");\n";
    }
}

void StageEmitter::emitTileWaits(StageOp stage) {
  for (WaitOp wait : stage.getBody().getOps<WaitOp>()) {
    if (wait.isWholeStage())
      continue;
    getReady();
    for (Operation &op : stage.getBody().front()) {
      auto anchor = dyn_cast<AnchorOpInterface>(op);
      if (!anchor)
        continue;
      // Waits count tiles through the whole stage.
      std::string tile =
          "(tile + " + str(anchor.getTilingAttr().getBegin()) + ")";
      std::string address =
          counterAddress(wait.getCounters(), wait.getMap(), tile);
      emitOwnTiles(ownTiles(&op), /*byThread=*/false);
      os << "    static_cast<void>(steps);\n"
         << "    mega::atTile(tile);\n"
         << "    mega::u32 *const counter = " << address << ";\n"
         << "    if (counter != last)\n      mega::Counter::wait(counter, "
         << wait.getTarget() << ");\n    last = counter;\n  }\n  }\n";
    }
  }
}

void StageEmitter::emitSignals(StageOp stage) {
  bool first = true;
  for (SignalOp signal : stage.getBody().getOps<SignalOp>()) {
    if (first)
      os << "  __syncthreads(); // all stores stand before the signals\n";
    first = false;
    Operation *anchor = anchorBehind(signal.getValue());
    emitOwnTiles(ownTiles(anchor), /*byThread=*/true);
    os << "    mega::Counter::add("
       << counterAddress(signal.getCounters(), signal.getMap(), "tile")
       << ", steps);\n  }\n  }\n";
  }
}

void StageEmitter::emitOwnTiles(const OwnTiles &own, bool byThread) {
  std::string begin = byThread ? "int(threadIdx.x)" : "0";
  std::string step = byThread ? str(model.threads()) : "1";
  os << "  {\n";
  if (!byThread)
    os << "  mega::u32 *last = nullptr;\n";
  if (own.range.empty()) {
    // Every gridDim.x-th tile.
    std::string stride = byThread ? step + " * int(gridDim.x)" : "gridDim.x";
    os << "  for (int tile = int(blockIdx.x) + " << begin
       << " * int(gridDim.x); tile < " << own.count << "; tile += " << stride
       << ") {\n    const int steps = 1;\n";
    return;
  }
  os << "  const mega::Range own = " << own.range << ";\n";
  std::string parts = str(own.parts);
  // The list's tiles that are this anchor's, and of which the CTA has a part.
  os << "  const int from = max(own.begin / " << parts << ", " << own.first
     << "), to = min((own.end + " << own.parts - 1 << ") / " << parts << ", "
     << own.first + own.count << ");\n"
     << "  for (int number = from + " << begin
     << "; number < to; number += " << step << ") {\n"
     << "    const int tile = number - " << own.first << ";\n"
     << "    const int steps = "
     << (own.steps == 1 ? std::string() : str(own.steps) + " * (")
     << "min(own.end, (number + 1) * " << parts
     << ") - max(own.begin, number * " << parts << ")"
     << (own.steps == 1 ? "" : ")") << ";\n";
}
