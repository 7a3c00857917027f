// SPDX-License-Identifier: Apache-2.0
/// \file
/// Edges between stages, and the ops that a choice of phases becomes.

#include "StageGraph.h"
#include "Recompute.h"

#include "mega/Analysis/Dependence.h"

#include "mlir/IR/Builders.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;
using namespace mega;

//===----------------------------------------------------------------------===//
// Edges
//===----------------------------------------------------------------------===//

void StageGraph::analyse(bool recompute) {
  nodes.clear();
  for (StageOp op : program.getBody().getOps<StageOp>())
    nodes.push_back({op, collectTileAccesses(op), {}, 0});
  for (int64_t later = 0; later < int64_t(nodes.size()); ++later)
    for (int64_t earlier = 0; earlier < later; ++earlier)
      addEdge(earlier, later, recompute);
}

void StageGraph::addEdge(int64_t earlier, int64_t later, bool recompute) {
  StageEdge edge;
  edge.earlier = earlier;
  for (const TileAccess &a : nodes[earlier].accesses)
    for (const TileAccess &b : nodes[later].accesses)
      if (dependentTiles(a, b))
        edge.pairs.push_back({&a, &b});
  if (edge.pairs.empty())
    return;
  std::optional<uint64_t> tiles = nodes[later].op.getTiles();
  if (counters && tiles) {
    SmallVector<AccessPair> rest;
    for (const AccessPair &pair : edge.pairs) {
      auto store = dyn_cast<StoreOp>(pair.first->op);
      auto load = dyn_cast<LoadOp>(pair.second->op);
      if (recompute && store && load && canRecompute(store, load))
        edge.again.push_back({store, load});
      else
        rest.push_back(pair);
    }
    if (!rest.empty())
      edge.counters = planCounters(rest, *tiles, waitLimit);
    edge.needsBarrier = !rest.empty() && !edge.counters;
  }
  nodes[later].edges.push_back(std::move(edge));
}

int64_t StageGraph::countPhases() const {
  int64_t phases = 0;
  for (const StageNode &node : nodes)
    phases = std::max(phases, node.phase + 1);
  return phases;
}

bool StageGraph::recomputePublished() {
  llvm::SetVector<AllocOp> buffers;
  bool changed = false;
  for (StageNode &node : nodes)
    for (StageEdge &edge : node.edges) {
      if (nodes[edge.earlier].phase != node.phase)
        continue;
      IRMapping mapping;
      for (auto [store, load] : edge.again) {
        if (auto alloc = store.getBuffer().getDefiningOp<AllocOp>())
          buffers.insert(alloc);
        recompute(store, load, mapping);
        changed = true;
      }
    }
  for (AllocOp alloc : buffers)
    dropIfUnread(alloc);
  if (changed)
    analyse(/*recompute=*/false);
  return changed;
}

SmallVector<std::string> StageGraph::describe(const StageEdge &edge,
                                              const StageNode &later) const {
  SmallVector<std::string> lines;
  StageOp from = nodes[edge.earlier].op, to = later.op;
  for (auto [a, b] : edge.pairs)
    lines.push_back((from.getName() + " -> " + to.getName() + ": " +
                     mega::describe(kindOf(*a, *b)) + " of " +
                     mega::describe(b->resource))
                        .str());
  return lines;
}

//===----------------------------------------------------------------------===//
// Writing
//===----------------------------------------------------------------------===//

static ArrayAttr arrayOf(OpBuilder &builder, ArrayRef<std::string> lines) {
  SmallVector<StringRef> refs(lines.begin(), lines.end());
  return builder.getStrArrayAttr(refs);
}

void StageGraph::write(ArrayRef<int64_t> order) {
  writePhases(order);
  for (StageNode &node : nodes)
    for (StageEdge &edge : node.edges)
      if (edge.useCounters)
        writeCounters(edge, node);
}

void StageGraph::writePhases(ArrayRef<int64_t> order) {
  OpBuilder builder(program.getContext());
  for (int64_t index = 0; index < countPhases(); ++index) {
    builder.setInsertionPointToEnd(&program.getBody().front());
    SmallVector<StageOp> members;
    SmallVector<std::string> covers;
    for (int64_t number : order) {
      const StageNode &node = nodes[number];
      if (node.phase != index)
        continue;
      members.push_back(node.op);
      for (const StageEdge &edge : node.edges)
        if (nodes[edge.earlier].phase == index - 1)
          llvm::append_range(covers, describe(edge, node));
    }
    if (index != 0)
      GridBarrierOp::create(builder, members.front().getLoc(),
                            arrayOf(builder, covers));
    auto phase = PhaseOp::create(builder, members.front().getLoc(), index);
    phases.push_back(phase);
    Block *body = builder.createBlock(&phase.getBody());
    for (StageOp stage : members)
      stage->moveBefore(body, body->end());
  }
}

void StageGraph::writeCounters(StageEdge &edge, StageNode &later) {
  const CounterEdge &plan = *edge.counters;
  StageOp earlier = nodes[edge.earlier].op;
  Location loc = later.op.getLoc();
  OpBuilder builder(phases.front());
  std::string name = (earlier.getName() + " -> " + later.op.getName()).str();
  Value set =
      CountersOp::create(builder, loc, CountersType::get(builder.getContext()),
                         builder.getStringAttr(name),
                         builder.getI64IntegerAttr(plan.count), IntegerAttr());
  builder.setInsertionPointToEnd(&earlier.getBody().front());
  for (const CounterEdge::Signal &signal : plan.signals)
    SignalOp::create(builder, AnchorOpInterface(signal.anchor)->getLoc(), set,
                     AnchorOpInterface(signal.anchor)->getResult(0),
                     AffineMapAttr::get(signal.map));
  builder.setInsertionPointToStart(&later.op.getBody().front());
  WaitOp::create(builder, loc, set, AffineMapAttr::get(plan.wait),
                 builder.getI64IntegerAttr(plan.target),
                 arrayOf(builder, describe(edge, later)));
  // After the waits if there is a phase, else before the signals.
  int64_t reset = later.phase + 1 < int64_t(phases.size()) ? later.phase + 1
                                                           : later.phase - 1;
  builder.setInsertionPointToStart(&phases[reset].getBody().front());
  ResetOp::create(builder, loc, set);
}
