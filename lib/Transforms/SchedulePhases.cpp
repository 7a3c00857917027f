// SPDX-License-Identifier: Apache-2.0
/// \file
/// Level 1 to 2: every stage runs in the earliest phase that its dependences
/// allow, and a grid barrier stands between phases.
///
/// A dependence costs one barrier, or none if counters can order the tiles of
/// the two stages. For a fixed set of stages and this choice of synchronisation
/// the result has the fewest barriers possible: the phase of a stage is the
/// length of the longest chain of dependences that ends in it, counting those
/// that need a barrier.

#include "CounterEdges.h"
#include "Recompute.h"

#include "mega/Analysis/TileRelation.h"
#include "mega/Transforms/Passes.h"

#include "mlir/IR/Builders.h"
#include "llvm/ADT/SetVector.h"

#include <vector>

namespace mega {
#define GEN_PASS_DEF_SCHEDULEPHASESPASS
#include "mega/Transforms/Passes.h.inc"
} // namespace mega

using namespace mlir;
using namespace mega;

namespace {

/// How a stage depends on an earlier one.
struct Edge {
  int64_t earlier; ///< index of the stage
  SmallVector<AccessPair> pairs;
  /// Values that the later stage computes again if it shares the phase.
  SmallVector<std::pair<StoreOp, LoadOp>> again;
  /// What covers the other pairs within a phase; none if only a barrier can.
  std::optional<CounterEdge> counters;
  bool needsBarrier = true;
};

struct ScheduledStage {
  StageOp op;
  SmallVector<TileAccess> accesses;
  std::vector<Edge> edges; ///< on the stages before it
  int64_t phase = 0;
};

StageDependence::Kind kindOf(const AccessPair &pair) {
  using Kind = StageDependence::Kind;
  return !pair.first->isWrite   ? Kind::WriteAfterRead
         : pair.second->isWrite ? Kind::WriteAfterWrite
                                : Kind::ReadAfterWrite;
}

class Scheduler {
public:
  Scheduler(ProgramOp program, const ScheduleOptions &options)
      : program(program), options(options) {}

  void run() {
    analyse(/*recompute=*/true);
    if (recomputePublished())
      analyse(/*recompute=*/false);
    makeRoomForResets();
    writePhases();
    writeCounters();
  }

private:
  /// Stages with their edges, each in the earliest phase.
  void analyse(bool recompute) {
    stages.clear();
    for (StageOp op : program.getBody().getOps<StageOp>())
      stages.push_back({op, collectTileAccesses(op), {}, 0});
    for (int64_t later = 0; later < int64_t(stages.size()); ++later)
      for (int64_t earlier = 0; earlier < later; ++earlier)
        addEdge(earlier, later, recompute);
    assignPhases();
  }

  void addEdge(int64_t earlier, int64_t later, bool recompute) {
    Edge edge{earlier, {}, {}, {}, true};
    for (const TileAccess &a : stages[earlier].accesses)
      for (const TileAccess &b : stages[later].accesses)
        if (a.resource == b.resource && (a.isWrite || b.isWrite) &&
            !sharedElements(a, b).isIntegerEmpty())
          edge.pairs.push_back({&a, &b});
    if (edge.pairs.empty())
      return;
    if (options.sync == Synchronization::Counters)
      chooseCounters(edge, stages[later].op, recompute);
    stages[later].edges.push_back(std::move(edge));
  }

  void chooseCounters(Edge &edge, StageOp later, bool recompute) const {
    if (!later.getTiles())
      return;
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
      edge.counters = planCounters(rest, *later.getTiles(), options.waitLimit);
    edge.needsBarrier = !rest.empty() && !edge.counters;
  }

  void assignPhases() {
    for (ScheduledStage &stage : stages) {
      stage.phase = std::max<int64_t>(stage.phase, 0);
      for (const Edge &edge : stage.edges)
        stage.phase = std::max(stage.phase,
                               stages[edge.earlier].phase + edge.needsBarrier);
    }
  }

  /// Within each phase, computes published values again. True if there are any.
  bool recomputePublished() {
    llvm::SetVector<AllocOp> buffers;
    for (ScheduledStage &stage : stages)
      for (Edge &edge : stage.edges) {
        if (stages[edge.earlier].phase != stage.phase)
          continue;
        IRMapping mapping;
        for (auto [store, load] : edge.again) {
          if (auto alloc = store.getBuffer().getDefiningOp<AllocOp>())
            buffers.insert(alloc);
          recompute(store, load, mapping);
        }
      }
    for (AllocOp alloc : buffers)
      dropIfUnread(alloc);
    return !buffers.empty();
  }

  int64_t countPhases() const {
    int64_t phases = 0;
    for (const ScheduledStage &stage : stages)
      phases = std::max(phases, stage.phase + 1);
    return phases;
  }

  /// Edges that counters cover: both ends share a phase.
  template <typename Visit> void forEachCounterEdge(Visit visit) {
    for (ScheduledStage &stage : stages)
      for (Edge &edge : stage.edges)
        if (edge.counters && stages[edge.earlier].phase == stage.phase)
          visit(edge, stage);
  }

  /// Counters become 0 again in another phase than the one that uses them, so
  /// there must be two: the last stage that would wait gets its own.
  void makeRoomForResets() {
    if (countPhases() != 1)
      return;
    ScheduledStage *last = nullptr;
    forEachCounterEdge([&](Edge &, ScheduledStage &stage) { last = &stage; });
    if (!last)
      return;
    last->phase = 1;
    assignPhases();
  }

  std::string describe(const AccessPair &pair, StringRef earlier,
                       StringRef later) const {
    return (earlier + " -> " + later + ": " + mega::describe(kindOf(pair)) +
            " of " + mega::describe(pair.second->resource))
        .str();
  }

  /// "producer -> consumer: ..." for each pair of the edge.
  void describe(const Edge &edge, ScheduledStage &later,
                SmallVectorImpl<std::string> &covers) {
    for (const AccessPair &pair : edge.pairs)
      covers.push_back(describe(pair, stages[edge.earlier].op.getName(),
                                later.op.getName()));
  }

  void writePhases() {
    OpBuilder builder(program.getContext());
    for (int64_t index = 0; index < countPhases(); ++index) {
      builder.setInsertionPointToEnd(&program.getBody().front());
      SmallVector<StageOp> members;
      SmallVector<std::string> covers;
      for (ScheduledStage &stage : stages) {
        if (stage.phase != index)
          continue;
        members.push_back(stage.op);
        for (const Edge &edge : stage.edges)
          if (stages[edge.earlier].phase == index - 1)
            describe(edge, stage, covers);
      }
      if (index != 0) {
        SmallVector<StringRef> refs(covers.begin(), covers.end());
        GridBarrierOp::create(builder, members.front().getLoc(),
                              builder.getStrArrayAttr(refs));
      }
      auto phase = PhaseOp::create(builder, members.front().getLoc(), index);
      phases.push_back(phase);
      Block *body = builder.createBlock(&phase.getBody());
      for (StageOp stage : members)
        stage->moveBefore(body, body->end());
    }
  }

  void writeCounters() {
    forEachCounterEdge([&](Edge &edge, ScheduledStage &later) {
      const CounterEdge &plan = *edge.counters;
      StageOp earlier = stages[edge.earlier].op;
      Location loc = later.op.getLoc();
      OpBuilder builder(phases.front());
      std::string name =
          (earlier.getName() + " -> " + later.op.getName()).str();
      Value counters = CountersOp::create(
          builder, loc, CountersType::get(builder.getContext()),
          builder.getStringAttr(name), builder.getI64IntegerAttr(plan.count),
          IntegerAttr());
      builder.setInsertionPointToEnd(&earlier.getBody().front());
      for (const CounterEdge::Signal &signal : plan.signals)
        SignalOp::create(builder, signal.anchor->getLoc(), counters,
                         signal.anchor->getResult(0),
                         AffineMapAttr::get(signal.map));
      SmallVector<std::string> covers;
      describe(edge, later, covers);
      SmallVector<StringRef> refs(covers.begin(), covers.end());
      builder.setInsertionPointToStart(&later.op.getBody().front());
      WaitOp::create(builder, loc, counters, AffineMapAttr::get(plan.wait),
                     builder.getI64IntegerAttr(plan.target),
                     builder.getStrArrayAttr(refs));
      // After the waits if there is a phase, else before the signals.
      int64_t reset = later.phase + 1 < int64_t(phases.size())
                          ? later.phase + 1
                          : later.phase - 1;
      builder.setInsertionPointToStart(&phases[reset].getBody().front());
      ResetOp::create(builder, loc, counters);
    });
  }

  ProgramOp program;
  ScheduleOptions options;
  std::vector<ScheduledStage> stages;
  SmallVector<PhaseOp> phases;
};

struct SchedulePhasesPass
    : public mega::impl::SchedulePhasesPassBase<SchedulePhasesPass> {
  using Base::Base;

  void runOnOperation() override {
    for (ProgramOp program : getOperation().getOps<ProgramOp>())
      Scheduler(program, {sync, waitLimit}).run();
  }
};

} // namespace
