// SPDX-License-Identifier: Apache-2.0
/// \file
/// The level-2 boundary: every dependent pair of accesses is ordered by a grid
/// barrier or by counters. It shares no decision with the scheduler: it reads
/// the phases, barriers, signals and waits that stand in the program, whoever
/// put them there.

#include "mega/Analysis/Dependence.h"
#include "mega/Analysis/TileRelation.h"
#include "mega/Transforms/Passes.h"

#include "mlir/Analysis/Presburger/PresburgerRelation.h"

#include <map>
#include <vector>

namespace mega {
#define GEN_PASS_DEF_VERIFYSCHEDULEPASS
#include "mega/Transforms/Passes.h.inc"
} // namespace mega

using namespace mlir;
using namespace mega;
using presburger::IntegerRelation;
using presburger::PresburgerRelation;
using presburger::PresburgerSpace;

namespace {

/// A stage, and how many barriers and stages stand before it.
struct PlacedStage {
  StageOp op;
  SmallVector<TileAccess> accesses;
  int64_t barriersBefore;
  int64_t position;
  SmallVector<WaitOp> waits;

  TileRange tiles() const {
    return {0, int64_t(StageOp(op).getTiles().value_or(1))};
  }
};

bool mayConflict(const TileAccess &a, const TileAccess &b) {
  return a.resource == b.resource && (a.isWrite || b.isWrite);
}

class ScheduleChecker {
public:
  explicit ScheduleChecker(Operation *container) : container(container) {}

  LogicalResult check() {
    if (failed(collect()))
      return failure();
    for (CountersOp counters : container->getRegion(0).getOps<CountersOp>())
      if (failed(checkCounters(counters)))
        return failure();
    for (const PlacedStage &stage : placed) {
      if (failed(checkDefined(stage)) || failed(checkOwnTiles(stage)))
        return failure();
      for (const PlacedStage &earlier : before(stage))
        if (failed(checkPair(earlier, stage)))
          return failure();
    }
    return success();
  }

private:
  LogicalResult collect() {
    int64_t barriers = 0;
    for (Operation &op : container->getRegion(0).front()) {
      if (isa<GridBarrierOp>(op))
        ++barriers;
      if (isa<StageOp>(op))
        return op.emitOpError("stands outside a phase; -mega-schedule-phases "
                              "should have moved it");
      auto phase = dyn_cast<PhaseOp>(op);
      if (!phase)
        continue;
      barriersBefore[phase] = barriers;
      for (StageOp stage : phase.getBody().getOps<StageOp>()) {
        indices[stage] = placed.size();
        placed.push_back({stage, collectTileAccesses(stage), barriers,
                          int64_t(placed.size()),
                          llvm::to_vector(stage.getBody().getOps<WaitOp>())});
      }
    }
    return success();
  }

  ArrayRef<PlacedStage> before(const PlacedStage &stage) const {
    return ArrayRef(placed).take_front(stage.position);
  }

  const PlacedStage &stageOf(Operation *op) const {
    return placed[indices.lookup(op->getParentOfType<StageOp>())];
  }

  //===--------------------------------------------------------------------===//
  // Counters
  //===--------------------------------------------------------------------===//

  LogicalResult checkCounters(CountersOp counters) {
    SmallVector<SignalOp> signals;
    SmallVector<WaitOp> waits;
    SmallVector<ResetOp> resets;
    for (Operation *user : counters.getCounters().getUsers()) {
      if (auto signal = dyn_cast<SignalOp>(user))
        signals.push_back(signal);
      else if (auto wait = dyn_cast<WaitOp>(user))
        waits.push_back(wait);
      else if (auto reset = dyn_cast<ResetOp>(user))
        resets.push_back(reset);
    }
    for (SignalOp signal : signals)
      if (!anchorBehind(signal.getValue()).getTilingAttr())
        return signal.emitOpError("counts tiles of an anchor without a tiling, "
                                  "expected a partitioned stage");
    SmallVector<int64_t> totals(counters.getCount(), 0);
    for (SignalOp signal : signals) {
      AnchorOpInterface anchor = anchorBehind(signal.getValue());
      for (int64_t tile = 0; tile < anchor.getTilingAttr().getCount(); ++tile)
        totals[*evaluateAt(signal.getMap(), tile)] += signalsOfTile(anchor);
    }
    for (WaitOp wait : waits)
      if (failed(checkWait(wait, counters, signals, totals)))
        return failure();
    if (signals.empty() && waits.empty() && resets.empty())
      return success();
    if (resets.size() != 1) {
      InFlightDiagnostic diag = counters.emitOpError("'")
                                << counters.getName() << "' is reset "
                                << resets.size()
                                << " times a step, expected once";
      for (ResetOp reset : resets)
        diag.attachNote(reset.getLoc()) << "a reset";
      for (WaitOp wait : waits)
        diag.attachNote(wait.getLoc()) << "a wait";
      return withSignals(diag, counters, signals);
    }
    return checkReset(resets.front(), counters, signals, waits);
  }

  LogicalResult checkWait(WaitOp wait, CountersOp counters,
                          ArrayRef<SignalOp> signals,
                          ArrayRef<int64_t> totals) const {
    const PlacedStage &stage = stageOf(wait);
    if (!StageOp(stage.op).getTiles())
      return wait.emitOpError("stands in a stage without a tile list, expected "
                              "a partitioned stage");
    // All CTAs are resident and walk the stages in order, so a wait ends if
    // what it waits for stands before it.
    for (SignalOp signal : signals)
      if (stageOf(signal).position >= stage.position) {
        InFlightDiagnostic diag = wait.emitOpError("waits for counters '")
                                  << counters.getName() << "' that '"
                                  << StageOp(stageOf(signal).op).getName()
                                  << "' signals, expected an earlier stage";
        diag.attachNote(signal.getLoc()) << "the signal";
        return diag;
      }
    for (int64_t tile = 0; tile < stage.tiles().end; ++tile) {
      int64_t counter = *evaluateAt(wait.getMap(), tile);
      if (totals[counter] == static_cast<int64_t>(wait.getTarget()))
        continue;
      InFlightDiagnostic diag = wait.emitOpError("expects ")
                                << static_cast<int64_t>(wait.getTarget())
                                << " signals of counter " << counter << " of '"
                                << counters.getName() << "', which gets "
                                << totals[counter] << " in a step";
      return withSignals(diag, counters, signals);
    }
    return success();
  }

  static LogicalResult withSignals(InFlightDiagnostic &diag,
                                   CountersOp counters,
                                   ArrayRef<SignalOp> signals) {
    diag.attachNote(counters.getLoc()) << "the counters";
    for (SignalOp signal : signals)
      diag.attachNote(signal->getLoc()) << "a signal";
    return diag;
  }

  LogicalResult checkReset(ResetOp reset, CountersOp counters,
                           ArrayRef<SignalOp> signals,
                           ArrayRef<WaitOp> waits) const {
    int64_t at = barriersBefore.lookup(reset->getParentOp());
    int64_t first = std::numeric_limits<int64_t>::max(), last = -1;
    Operation *nearest = nullptr;
    auto visit = [&](Operation *op) {
      int64_t use = stageOf(op).barriersBefore;
      first = std::min(first, use);
      last = std::max(last, use);
      if (!nearest || use == at)
        nearest = op;
    };
    for (SignalOp signal : signals)
      visit(signal);
    for (WaitOp wait : waits)
      visit(wait);
    if (!nearest || at < first || at > last)
      return success();
    InFlightDiagnostic diag = reset.emitOpError("of '")
                              << counters.getName()
                              << "' has no barrier between it and '"
                              << StageOp(stageOf(nearest).op).getName()
                              << "', expected one after or before all signals "
                                 "and waits";
    diag.attachNote(nearest->getLoc()) << "which uses the counters";
    return diag;
  }

  //===--------------------------------------------------------------------===//
  // Order
  //===--------------------------------------------------------------------===//

  static PresburgerRelation none() {
    return PresburgerRelation::getEmpty(
        PresburgerSpace::getRelationSpace(/*numDomain=*/1, /*numRange=*/1));
  }

  /// { p -> c : tile p of `earlier` has ended before tile c of `later` begins
  /// }, both in one phase, by counters; with `prologue`, before every CTA's
  /// prologue of `later`, which counts as tile 0.
  PresburgerRelation ordered(const PlacedStage &earlier,
                             const PlacedStage &later, bool prologue) {
    auto key = std::tuple(earlier.position, later.position, prologue);
    auto known = orders.find(key);
    if (known != orders.end())
      return known->second;
    PresburgerRelation result = none();
    for (WaitOp wait : later.waits) {
      if (prologue && !wait.isWholeStage())
        continue;
      TileRange waiters = prologue ? TileRange{0, 1} : later.tiles();
      for (Operation *user : wait.getCounters().getUsers()) {
        auto signal = dyn_cast<SignalOp>(user);
        if (!signal)
          continue;
        const PlacedStage &middle = stageOf(signal);
        if (middle.position < earlier.position)
          continue;
        TilingAttr tiling = anchorBehind(signal.getValue()).getTilingAttr();
        TileRange signallers{tiling.getBegin(),
                             tiling.getBegin() + tiling.getCount()};
        PresburgerRelation step(
            sameCounter(signal.getMap(), signallers, wait.getMap(), waiters));
        if (middle.position != earlier.position) {
          PresburgerRelation through = ordered(earlier, middle, false);
          through.compose(step);
          step = std::move(through);
        }
        result.unionInPlace(step);
      }
    }
    result = result.coalesce();
    orders.insert({key, result});
    return result;
  }

  LogicalResult checkPair(const PlacedStage &earlier,
                          const PlacedStage &later) {
    if (earlier.barriersBefore < later.barriersBefore)
      return success();
    for (const TileAccess &a : earlier.accesses)
      for (const TileAccess &b : later.accesses)
        if (mayConflict(a, b) && failed(checkAccesses(earlier, a, later, b)))
          return failure();
    return success();
  }

  LogicalResult checkAccesses(const PlacedStage &earlier, const TileAccess &a,
                              const PlacedStage &later, const TileAccess &b) {
    PresburgerRelation dependent(sharedElements(a, b));
    if (dependent.isIntegerEmpty())
      return success();
    StageOp stage = later.op, other = earlier.op;
    std::string what =
        (describe(kindOf(a, b)) + " of " + describe(b.resource)).str();
    if (later.waits.empty() || a.isPrologue()) {
      InFlightDiagnostic diag = stage.emitOpError("'")
                                << stage.getName() << "' and '"
                                << other.getName()
                                << "' have no barrier between them, expected "
                                   "one for the "
                                << what;
      return withAccesses(diag, a, b);
    }
    PresburgerRelation missing =
        dependent.subtract(ordered(earlier, later, b.isPrologue()));
    SmallVector<llvm::DynamicAPInt> sample;
    if (!missing.findIntegerSample(sample))
      return success();
    InFlightDiagnostic diag = stage.emitOpError("'")
                              << stage.getName()
                              << "' does not wait for all of '"
                              << other.getName() << "', expected ";
    if (b.isPrologue())
      diag << "its prologue";
    else
      diag << "its tile " << int64_t(sample[1]);
    diag << " to wait for tile " << int64_t(sample[0]) << " for the " << what;
    return withAccesses(diag, a, b);
  }

  static LogicalResult withAccesses(InFlightDiagnostic &diag,
                                    const TileAccess &a, const TileAccess &b) {
    diag.attachNote(a.op->getLoc()) << "the earlier access";
    diag.attachNote(b.op->getLoc()) << "the later access";
    return diag;
  }

  /// Tiles of one stage run at any time, on any CTA.
  LogicalResult checkOwnTiles(const PlacedStage &stage) const {
    for (auto [index, a] : llvm::enumerate(stage.accesses))
      for (const TileAccess &b : ArrayRef(stage.accesses).drop_front(index)) {
        if (!mayConflict(a, b))
          continue;
        // The shares of a prologue store are disjoint.
        if (&a == &b && a.isPrologue())
          continue;
        PresburgerRelation shared(sharedElements(a, b));
        if (!a.isPrologue() && !b.isPrologue()) {
          IntegerRelation same = allPairs(stage.tiles(), stage.tiles());
          same.addEquality({1, -1, 0});
          shared = shared.subtract(PresburgerRelation(same));
        }
        if (shared.isIntegerEmpty())
          continue;
        StageOp op = stage.op;
        InFlightDiagnostic diag =
            op.emitOpError("'")
            << op.getName() << "' orders none of its own tiles, expected no "
            << describe(kindOf(a, b)) << " of " << describe(b.resource);
        return withAccesses(diag, a, b);
      }
    return success();
  }

  /// Every buffer that a stage reads has been written by an earlier stage.
  LogicalResult checkDefined(const PlacedStage &stage) const {
    for (const TileAccess &access : stage.accesses) {
      auto buffer = dyn_cast<Value>(access.resource);
      if (access.isWrite || !buffer || isa<BlockArgument>(buffer))
        continue;
      bool written = llvm::any_of(before(stage), [&](const PlacedStage &other) {
        return llvm::any_of(other.accesses, [&](const TileAccess &a) {
          return a.isWrite && a.resource == access.resource;
        });
      });
      if (written)
        continue;
      InFlightDiagnostic diag = access.op->emitOpError("reads ")
                                << describe(access.resource)
                                << ", expected an earlier stage to write it";
      for (Operation *user : buffer.getUsers())
        if (isa<StoreOp>(user))
          diag.attachNote(user->getLoc()) << "a later stage's write";
      diag.attachNote(buffer.getLoc()) << "the buffer";
      return diag;
    }
    return success();
  }

  Operation *container;
  std::vector<PlacedStage> placed;
  llvm::DenseMap<Operation *, int64_t> barriersBefore; ///< by phase
  llvm::DenseMap<Operation *, size_t> indices;         ///< into `placed`
  std::map<std::tuple<int64_t, int64_t, bool>, PresburgerRelation> orders;
};

struct VerifySchedulePass
    : public mega::impl::VerifySchedulePassBase<VerifySchedulePass> {
  using Base::Base;

  void runOnOperation() override {
    for (Operation &op : getOperation().getBodyRegion().front())
      if (isa<ProgramOp, KernelOp>(op) && failed(ScheduleChecker(&op).check()))
        return signalPassFailure();
  }
};

} // namespace
