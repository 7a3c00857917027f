// SPDX-License-Identifier: Apache-2.0
/// \file
/// Happens-before by enumeration.

#include "Oracle.h"

#include "mega/Analysis/TileAccess.h"

#include "llvm/ADT/BitVector.h"
#include "llvm/ADT/DenseMap.h"

#include <map>
#include <vector>

using namespace mlir;
using namespace mega;

namespace {

/// A run of places that an event touches.
struct Touch {
  const void *space; ///< a buffer, a state, or the workspace
  int64_t first, end;
  bool isWrite;
  const void *resource;
  Operation *op;
};

struct Event {
  int64_t stage;
  int64_t tile; ///< of the stage's list; -1 and -2 are prologues
  std::vector<Touch> touches;

  bool isPrologue() const { return tile < 0; }
};

class Oracle {
public:
  explicit Oracle(Operation *container) : container(container) {}

  std::string run() {
    collect();
    if (std::string reason = checkCounters(); !reason.empty())
      return reason;
    // The second step finds the counters as the first left them.
    for (bool second : {false, true}) {
      order(second);
      if (std::string reason = checkTouches(); !reason.empty())
        return reason;
    }
    return "";
  }

private:
  void collect() {
    int64_t barriers = 0;
    for (Operation &op : container->getRegion(0).front()) {
      barriers += isa<GridBarrierOp>(op);
      auto phase = dyn_cast<PhaseOp>(op);
      if (!phase)
        continue;
      for (ResetOp reset : phase.getBody().getOps<ResetOp>())
        resets[reset.getCounters()].push_back(barriers);
      for (StageOp stage : phase.getBody().getOps<StageOp>())
        addStage(stage, barriers);
    }
  }

  void addStage(StageOp stage, int64_t barriers) {
    int64_t index = stages.size();
    indices[stage] = index;
    stages.push_back(stage);
    epochs.push_back(barriers);
    firstEvent.push_back(events.size());
    int64_t tiles = stage.getTiles().value_or(0);
    for (int64_t tile = -2; tile < tiles; ++tile)
      events.push_back({index, tile, {}});
    for (const TileAccess &access : collectTileAccesses(stage)) {
      if (access.isPrologue())
        for (int64_t cta : {-2, -1})
          touch(eventOf(index, cta), access, 0);
      for (int64_t tile = access.begin;
           !access.isPrologue() && tile < access.end; ++tile)
        touch(eventOf(index, tile), access, tile);
    }
  }

  Event &eventOf(int64_t stage, int64_t tile) {
    return events[firstEvent[stage] + tile + 2];
  }

  void touch(Event &event, const TileAccess &access, int64_t tile) {
    const void *resource = access.resource.getOpaqueValue();
    const void *space = resource;
    int64_t scale = 1, offset = 0;
    if (auto buffer = dyn_cast<Value>(access.resource))
      if (auto alloc = buffer.getDefiningOp<AllocOp>();
          alloc && alloc.getOffset()) {
        space = nullptr;
        offset = *alloc.getOffset();
        scale = alloc.getBuffer().getType().getByteSize() /
                alloc.getBuffer().getType().getNumElements();
      }
    access.forEachRun(tile, [&](int64_t first, int64_t length) {
      event.touches.push_back({space, offset + first * scale,
                               offset + (first + length) * scale,
                               access.isWrite, resource, access.op});
    });
  }

  //===--------------------------------------------------------------------===//
  // Counters
  //===--------------------------------------------------------------------===//

  struct Signal {
    int64_t event;
    int64_t amount; ///< in all
    int64_t least;  ///< that the event cannot end without
  };

  /// Signals of counter `counter` of a set.
  std::vector<Signal> signalsOf(Value set, int64_t counter) {
    std::map<int64_t, Signal> signals;
    for (Operation *user : set.getUsers()) {
      auto op = dyn_cast<SignalOp>(user);
      if (!op)
        continue;
      AnchorOpInterface anchor = anchorBehind(op.getValue());
      TilingAttr tiling = anchor.getTilingAttr();
      int64_t stage = indices[op->getParentOp()];
      for (int64_t tile = 0; tile < tiling.getCount(); ++tile) {
        if (*evaluateAt(op.getMap(), tile) != counter)
          continue;
        int64_t event = firstEvent[stage] + tiling.getBegin() + tile + 2;
        Signal &signal = signals[event];
        signal.event = event;
        signal.amount += signalsOfTile(anchor);
        signal.least += 1;
      }
    }
    std::vector<Signal> result;
    for (auto &[event, signal] : signals)
      result.push_back(signal);
    return result;
  }

  std::string checkCounters() {
    for (auto counters : container->getRegion(0).getOps<CountersOp>()) {
      Value set = counters.getCounters();
      int64_t first = std::numeric_limits<int64_t>::max(), last = -1;
      bool waits = false;
      for (Operation *user : set.getUsers()) {
        if (!isa<SignalOp, WaitOp>(user))
          continue;
        int64_t epoch = epochs[indices[user->getParentOp()]];
        first = std::min(first, epoch);
        last = std::max(last, epoch);
        waits |= isa<WaitOp>(user);
      }
      for (int64_t reset : resets[set])
        if (waits && reset >= first && reset <= last)
          return "a reset beside signals and waits";
    }
    for (auto [index, stage] : llvm::enumerate(stages))
      for (WaitOp wait : stage.getBody().getOps<WaitOp>())
        for (int64_t tile = 0; tile < int64_t(*stage.getTiles()); ++tile) {
          int64_t before = 0;
          for (const Signal &signal :
               signalsOf(wait.getCounters(), *evaluateAt(wait.getMap(), tile)))
            if (events[signal.event].stage < int64_t(index))
              before += signal.amount;
          if (before < int64_t(wait.getTarget()))
            return "a wait that may never end";
        }
    return "";
  }

  //===--------------------------------------------------------------------===//
  // Order
  //===--------------------------------------------------------------------===//

  /// Fills in what has surely ended before each event.
  void order(bool second) {
    before.assign(events.size(), llvm::BitVector(events.size()));
    for (auto [number, event] : llvm::enumerate(events)) {
      llvm::BitVector &row = before[number];
      for (auto [other, earlier] : llvm::enumerate(events))
        if (epochs[earlier.stage] < epochs[event.stage])
          row.set(other);
      StageOp stage = stages[event.stage];
      for (WaitOp wait : stage.getBody().getOps<WaitOp>()) {
        if (event.isPrologue() && !wait.isWholeStage())
          continue;
        // A set that nobody reset is full already.
        if (second && resets[wait.getCounters()].empty())
          continue;
        int64_t counter =
            *evaluateAt(wait.getMap(), std::max<int64_t>(event.tile, 0));
        std::vector<Signal> signals = signalsOf(wait.getCounters(), counter);
        int64_t total = 0;
        for (const Signal &signal : signals)
          total += signal.amount;
        for (const Signal &signal : signals)
          if (total - signal.least < int64_t(wait.getTarget())) {
            row.set(signal.event);
            row |= before[signal.event];
          }
      }
    }
  }

  bool ordered(int64_t a, int64_t b) const {
    return before[b].test(a) || before[a].test(b);
  }

  //===--------------------------------------------------------------------===//
  // Memory
  //===--------------------------------------------------------------------===//

  struct Visit {
    int64_t event;
    const Touch *touch;
  };

  std::string checkTouches() {
    std::map<std::pair<const void *, int64_t>, std::vector<Visit>> places;
    std::map<const void *, std::vector<int64_t>> writers;
    for (auto [number, event] : llvm::enumerate(events))
      for (const Touch &touch : event.touches) {
        if (touch.isWrite)
          writers[touch.resource].push_back(number);
        for (int64_t place = touch.first; place < touch.end; ++place)
          places[{touch.space, place}].push_back({int64_t(number), &touch});
      }
    for (auto &[place, visits] : places)
      for (const Visit &a : visits)
        for (const Visit &b : visits) {
          if (a.event >= b.event || (!a.touch->isWrite && !b.touch->isWrite))
            continue;
          // One share of a prologue store.
          if (a.touch->op == b.touch->op && events[a.event].isPrologue() &&
              events[b.event].isPrologue())
            continue;
          if (!ordered(a.event, b.event))
            return "a race";
        }
    for (auto &[place, visits] : places)
      for (const Visit &read : visits)
        if (!read.touch->isWrite && !keepsValue(read, visits))
          return "a value that another overwrites";
    return checkDefined(writers);
  }

  /// No other buffer's write stands between the value and its reader.
  bool keepsValue(const Visit &read, const std::vector<Visit> &visits) const {
    for (const Visit &other : visits) {
      if (!other.touch->isWrite ||
          other.touch->resource == read.touch->resource)
        continue;
      bool renewed = false;
      for (const Visit &write : visits)
        renewed |= write.touch->isWrite &&
                   write.touch->resource == read.touch->resource &&
                   before[write.event].test(other.event) &&
                   before[read.event].test(write.event);
      if (!renewed && !before[other.event].test(read.event))
        return false;
    }
    return true;
  }

  std::string
  checkDefined(const std::map<const void *, std::vector<int64_t>> &writers) {
    for (auto [number, event] : llvm::enumerate(events))
      for (const Touch &touch : event.touches) {
        auto load = dyn_cast<LoadOp>(touch.op);
        auto sum = dyn_cast<LoadSumOp>(touch.op);
        Value buffer = load  ? Value(load.getBuffer())
                       : sum ? Value(sum.getBuffer())
                             : Value();
        if (!buffer || isa<BlockArgument>(buffer))
          continue;
        bool written = false;
        auto it = writers.find(touch.resource);
        if (it != writers.end())
          for (int64_t writer : it->second)
            written |= before[number].test(writer);
        if (!written)
          return "a read of what nobody wrote";
      }
    return "";
  }

  Operation *container;
  std::vector<StageOp> stages;
  std::vector<int64_t> epochs, firstEvent;
  llvm::DenseMap<Operation *, int64_t> indices;
  llvm::DenseMap<Value, std::vector<int64_t>> resets;
  std::vector<Event> events;
  std::vector<llvm::BitVector> before;
};

} // namespace

std::string mega::test::whyUnsafe(Operation *container) {
  return Oracle(container).run();
}
