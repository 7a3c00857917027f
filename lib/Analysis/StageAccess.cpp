// SPDX-License-Identifier: Apache-2.0
/// \file
/// Accesses and dependences of stages.

#include "mega/Analysis/StageAccess.h"

#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace mega;

SmallVector<StageAccess> mega::collectAccesses(StageOp stage) {
  SmallVector<StageAccess> accesses;
  auto read = [&](Resource r, Operation *op) {
    accesses.push_back({r, /*isWrite=*/false, op});
  };
  auto write = [&](Resource r, Operation *op) {
    accesses.push_back({r, /*isWrite=*/true, op});
  };
  for (Operation &operation : stage.getBody().front()) {
    Operation *op = &operation;
    TypeSwitch<Operation *>(op)
        .Case<LoadOp, LoadSumOp>([&](auto load) { read(load.getBuffer(), op); })
        .Case([&](StoreOp store) { write(store.getBuffer(), op); })
        .Case<ShortConvOp, DeltaRuleOp>([&](auto update) {
          read(update.getStateAttr().getAttr(), op);
          write(update.getStateAttr().getAttr(), op);
        })
        .Case([&](CacheAppendOp append) {
          write(append.getStateAttr().getAttr(), op);
        })
        .Case([&](LatentScoresOp scores) {
          read(scores.getLatentAttr().getAttr(), op);
          read(scores.getRopeAttr().getAttr(), op);
        });
  }
  return accesses;
}

SmallVector<StageDependence>
mega::collectDependences(ArrayRef<StageAccess> earlier,
                         ArrayRef<StageAccess> later) {
  using Kind = StageDependence::Kind;
  SmallVector<StageDependence> dependences;
  for (const StageAccess &a : earlier)
    for (const StageAccess &b : later) {
      if (a.resource != b.resource || (!a.isWrite && !b.isWrite))
        continue;
      Kind kind = !a.isWrite  ? Kind::WriteAfterRead
                  : b.isWrite ? Kind::WriteAfterWrite
                              : Kind::ReadAfterWrite;
      dependences.push_back({kind, a, b});
    }
  return dependences;
}

StringRef mega::describe(StageDependence::Kind kind) {
  switch (kind) {
  case StageDependence::Kind::ReadAfterWrite:
    return "read after write";
  case StageDependence::Kind::WriteAfterRead:
    return "write after read";
  case StageDependence::Kind::WriteAfterWrite:
    return "write after write";
  }
  llvm_unreachable("covered switch");
}

std::string mega::describe(Resource resource) {
  if (auto state = dyn_cast<StringAttr>(resource))
    return ("@" + state.getValue()).str();
  auto buffer = cast<Value>(resource);
  if (auto argument = dyn_cast<BlockArgument>(buffer))
    return argument.getArgNumber() == 0 ? "the input" : "the output";
  return buffer.getDefiningOp<AllocOp>().getName().str();
}
