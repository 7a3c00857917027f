// SPDX-License-Identifier: Apache-2.0
/// \file
/// Level 1 to 2: every stage runs in the earliest phase that its dependences
/// allow, and a grid barrier stands between phases.
///
/// For a fixed set of stages and grid barriers as the only synchronisation this
/// is the fewest barriers possible: the phase of a stage is the length of the
/// longest chain of dependences that ends in it.

#include "mega/Analysis/StageAccess.h"
#include "mega/Transforms/Passes.h"

#include "mlir/IR/Builders.h"
#include "llvm/ADT/MapVector.h"

namespace mega {
#define GEN_PASS_DEF_SCHEDULEPHASESPASS
#include "mega/Transforms/Passes.h.inc"
} // namespace mega

using namespace mlir;
using namespace mega;

namespace {

struct ScheduledStage {
  StageOp op;
  SmallVector<StageAccess> accesses;
  int64_t phase = 0;
  /// Why it cannot run one phase earlier: "producer -> consumer: ...".
  SmallVector<std::string> reasons;
};

/// Phase of each stage, from the stages before it in the program.
SmallVector<ScheduledStage> assignPhases(ProgramOp program) {
  SmallVector<ScheduledStage> stages;
  for (StageOp op : program.getBody().getOps<StageOp>()) {
    ScheduledStage stage{op, collectAccesses(op), 0, {}};
    for (const ScheduledStage &earlier : stages)
      if (!collectDependences(earlier.accesses, stage.accesses).empty())
        stage.phase = std::max(stage.phase, earlier.phase + 1);
    for (ScheduledStage &earlier : stages) {
      if (earlier.phase != stage.phase - 1)
        continue;
      for (const StageDependence &edge :
           collectDependences(earlier.accesses, stage.accesses))
        stage.reasons.push_back((earlier.op.getName() + " -> " + op.getName() +
                                 ": " + describe(edge.kind) + " of " +
                                 describe(edge.later.resource))
                                    .str());
    }
    stages.push_back(std::move(stage));
  }
  return stages;
}

struct SchedulePhasesPass
    : public mega::impl::SchedulePhasesPassBase<SchedulePhasesPass> {
  using Base::Base;

  void runOnOperation() override {
    for (ProgramOp program : getOperation().getOps<ProgramOp>())
      schedule(program);
  }

private:
  static void schedule(ProgramOp program) {
    SmallVector<ScheduledStage> stages = assignPhases(program);
    int64_t phases = 0;
    for (const ScheduledStage &stage : stages)
      phases = std::max(phases, stage.phase + 1);

    OpBuilder builder(program.getContext());
    for (int64_t index = 0; index < phases; ++index) {
      builder.setInsertionPointToEnd(&program.getBody().front());
      SmallVector<StageOp> members;
      SmallVector<std::string> covers;
      for (ScheduledStage &stage : stages)
        if (stage.phase == index) {
          members.push_back(stage.op);
          llvm::append_range(covers, stage.reasons);
        }
      if (index != 0) {
        SmallVector<StringRef> refs(covers.begin(), covers.end());
        GridBarrierOp::create(builder, members.front().getLoc(),
                              builder.getStrArrayAttr(refs));
      }
      auto phase = PhaseOp::create(builder, members.front().getLoc(), index);
      Block *body = builder.createBlock(&phase.getBody());
      for (StageOp stage : members)
        stage->moveBefore(body, body->end());
    }
  }
};

} // namespace
