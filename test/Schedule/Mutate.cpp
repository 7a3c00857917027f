// SPDX-License-Identifier: Apache-2.0
/// \file
/// One change a function.

#include "Mutate.h"

#include "mlir/IR/Builders.h"

using namespace mlir;
using namespace mega;
using mega::test::Mutation;

const char *mega::test::describe(Mutation mutation) {
  switch (mutation) {
  case Mutation::DropBarrier:
    return "drop barrier";
  case Mutation::DropWait:
    return "drop wait";
  case Mutation::DropSignal:
    return "drop signal";
  case Mutation::ChangeTarget:
    return "change target";
  case Mutation::ChangeMap:
    return "change map";
  case Mutation::SwapStages:
    return "swap stages";
  case Mutation::MoveStage:
    return "move stage";
  case Mutation::DropReset:
    return "drop reset";
  case Mutation::AddReset:
    return "add reset";
  case Mutation::MoveReset:
    return "move reset";
  case Mutation::ShareBytes:
    return "share bytes";
  }
  return "";
}

namespace {

class Mutator {
public:
  Mutator(Operation *container, std::mt19937_64 &random)
      : container(container), random(random) {}

  template <typename Op> Op any() {
    SmallVector<Op> ops;
    container->walk([&](Op op) { ops.push_back(op); });
    return ops.empty() ? Op() : ops[below(ops.size())];
  }

  template <typename Op> bool drop() {
    Op op = any<Op>();
    if (op)
      op.erase();
    return bool(op);
  }

  bool changeTarget() {
    WaitOp wait = any<WaitOp>();
    if (!wait)
      return false;
    int64_t target = wait.getTarget();
    wait.setTarget(target > 1 && below(2) ? target - 1 : target + 1);
    return true;
  }

  /// Another map into the same counters.
  bool changeMap() {
    WaitOp wait = any<WaitOp>();
    SignalOp signal = any<SignalOp>();
    if (!wait || !signal)
      return false;
    auto change = [&](auto op) {
      int64_t count =
          op.getCounters().template getDefiningOp<CountersOp>().getCount();
      AffineExpr expr = op.getMap().getResult(0);
      AffineExpr tile = getAffineDimExpr(0, op.getContext());
      switch (below(3)) {
      case 0:
        expr = (expr + 1) % count;
        break;
      case 1:
        expr = tile % count;
        break;
      case 2:
        expr = getAffineConstantExpr(int64_t(below(count)), op.getContext());
        break;
      }
      AffineMap map = AffineMap::get(1, 0, expr);
      if (map == op.getMap())
        return false;
      op.setMap(map);
      return true;
    };
    return below(2) ? change(wait) : change(signal);
  }

  bool swapStages() {
    SmallVector<StageOp> stages = allStages();
    if (stages.size() < 2)
      return false;
    size_t first = below(stages.size() - 1);
    Operation *a = stages[first], *b = stages[first + 1];
    if (a->getBlock() == b->getBlock()) {
      b->moveBefore(a);
      return true;
    }
    Operation *afterA = a->getNextNode();
    Block *blockA = a->getBlock();
    a->moveBefore(b);
    if (afterA)
      b->moveBefore(afterA);
    else
      b->moveBefore(blockA, blockA->end());
    return true;
  }

  /// Into the phase before or after.
  bool moveStage() {
    SmallVector<PhaseOp> phases =
        llvm::to_vector(container->getRegion(0).getOps<PhaseOp>());
    if (phases.size() < 2)
      return false;
    size_t at = below(phases.size());
    size_t to = at == 0                   ? 1
                : at + 1 == phases.size() ? at - 1
                : below(2)                ? at - 1
                                          : at + 1;
    SmallVector<StageOp> stages =
        llvm::to_vector(phases[at].getBody().getOps<StageOp>());
    if (stages.empty())
      return false;
    Operation *stage = stages[below(stages.size())];
    Block *block = &phases[to].getBody().front();
    if (to < at)
      stage->moveBefore(block, block->end());
    else
      stage->moveBefore(block, block->begin());
    return true;
  }

  bool addReset() {
    ResetOp reset = any<ResetOp>();
    if (!reset)
      return false;
    SmallVector<PhaseOp> phases =
        llvm::to_vector(container->getRegion(0).getOps<PhaseOp>());
    OpBuilder builder = OpBuilder::atBlockBegin(
        &phases[below(phases.size())].getBody().front());
    ResetOp::create(builder, reset.getLoc(), reset.getCounters());
    return true;
  }

  bool moveReset() {
    ResetOp reset = any<ResetOp>();
    return reset && addReset() && (reset.erase(), true);
  }

  /// Puts a buffer where another lies.
  bool shareBytes() {
    AllocOp a = any<AllocOp>(), b = any<AllocOp>();
    if (!a || a == b || !a.getOffset() || a.getOffset() == b.getOffset())
      return false;
    a.setOffset(*b.getOffset());
    return true;
  }

private:
  size_t below(size_t bound) { return random() % bound; }

  SmallVector<StageOp> allStages() {
    SmallVector<StageOp> stages;
    container->walk([&](StageOp stage) { stages.push_back(stage); });
    return stages;
  }

  Operation *container;
  std::mt19937_64 &random;
};

} // namespace

bool mega::test::mutate(Operation *container, Mutation mutation,
                        std::mt19937_64 &random) {
  Mutator mutator(container, random);
  switch (mutation) {
  case Mutation::DropBarrier:
    return mutator.drop<GridBarrierOp>();
  case Mutation::DropWait:
    return mutator.drop<WaitOp>();
  case Mutation::DropSignal:
    return mutator.drop<SignalOp>();
  case Mutation::ChangeTarget:
    return mutator.changeTarget();
  case Mutation::ChangeMap:
    return mutator.changeMap();
  case Mutation::SwapStages:
    return mutator.swapStages();
  case Mutation::MoveStage:
    return mutator.moveStage();
  case Mutation::DropReset:
    return mutator.drop<ResetOp>();
  case Mutation::AddReset:
    return mutator.addReset();
  case Mutation::MoveReset:
    return mutator.moveReset();
  case Mutation::ShareBytes:
    return mutator.shareBytes();
  }
  return false;
}
