// SPDX-License-Identifier: Apache-2.0
/// \file
/// The level-3 boundary: the memory plan. Live ranges are computed here again,
/// from the barriers that stand in the kernel.

#include "mega/Analysis/StageAccess.h"
#include "mega/Transforms/Passes.h"

namespace mega {
#define GEN_PASS_DEF_VERIFYKERNELPASS
#include "mega/Transforms/Passes.h.inc"
} // namespace mega

using namespace mlir;
using namespace mega;

namespace {

/// How many barriers stand before each phase. Phases with the same number may
/// run at the same time, whatever their indices are.
llvm::DenseMap<Operation *, int64_t> countBarriers(KernelOp kernel) {
  llvm::DenseMap<Operation *, int64_t> before;
  int64_t barriers = 0;
  for (Operation &op : kernel.getBody().front()) {
    barriers += isa<GridBarrierOp>(op);
    before[&op] = barriers;
  }
  return before;
}

/// The first and the last time at which a stage touches the buffer.
std::pair<int64_t, int64_t>
liveRange(AllocOp alloc, const llvm::DenseMap<Operation *, int64_t> &times) {
  int64_t first = std::numeric_limits<int64_t>::max(), last = -1;
  for (Operation *user : alloc.getBuffer().getUsers()) {
    Operation *phase = user->getParentOfType<PhaseOp>();
    int64_t time = phase ? times.lookup(phase) : 0;
    first = std::min(first, time);
    last = std::max(last, time);
  }
  if (alloc.getProbe())
    last = std::numeric_limits<int64_t>::max();
  return {first, last};
}

int64_t endOf(AllocOp alloc) {
  return *alloc.getOffset() + alloc.getBuffer().getType().getByteSize();
}

/// Counters have their own bytes for the whole step.
LogicalResult checkCounters(KernelOp kernel) {
  struct Place {
    Operation *op;
    StringRef name;
    int64_t begin, end;
  };
  SmallVector<Place> places;
  for (AllocOp alloc : kernel.getBody().getOps<AllocOp>())
    places.push_back(
        {alloc, alloc.getName(), int64_t(*alloc.getOffset()), endOf(alloc)});
  for (CountersOp counters : kernel.getBody().getOps<CountersOp>()) {
    if (!counters.getOffset())
      return counters.emitOpError(
          "has no offset; -mega-plan-memory should have set it");
    int64_t begin = *counters.getOffset();
    int64_t end = begin + int64_t(counters.getCount()) * kCounterStride;
    if (begin < kBarrierBytes)
      return counters.emitOpError("has offset ")
             << begin << ", expected at least " << kBarrierBytes
             << ", where the grid barrier's counter ends";
    if (end > static_cast<int64_t>(kernel.getWorkspaceBytes()))
      return counters.emitOpError("ends at byte ")
             << end << ", expected at most the workspace's "
             << kernel.getWorkspaceBytes();
    for (const Place &place : places)
      if (begin < place.end && place.begin < end) {
        InFlightDiagnostic diag = counters.emitOpError("'")
                                  << counters.getName()
                                  << "' shares bytes with '" << place.name
                                  << "', expected disjoint bytes";
        diag.attachNote(place.op->getLoc()) << "the other";
        return diag;
      }
    places.push_back({counters, counters.getName(), begin, end});
  }
  return success();
}

LogicalResult checkKernel(KernelOp kernel) {
  auto allocs = llvm::to_vector(kernel.getBody().getOps<AllocOp>());
  for (AllocOp alloc : allocs) {
    if (!alloc.getOffset())
      return alloc.emitOpError(
          "has no offset; -mega-plan-memory should have set it");
    if (*alloc.getOffset() % 16 != 0)
      return alloc.emitOpError("has offset ")
             << *alloc.getOffset() << ", expected a multiple of 16";
    if (static_cast<int64_t>(*alloc.getOffset()) < kBarrierBytes)
      return alloc.emitOpError("has offset ")
             << *alloc.getOffset() << ", expected at least " << kBarrierBytes
             << ", where the grid barrier's counter ends";
    if (endOf(alloc) > static_cast<int64_t>(kernel.getWorkspaceBytes()))
      return alloc.emitOpError("ends at byte ")
             << endOf(alloc) << ", expected at most the workspace's "
             << kernel.getWorkspaceBytes();
  }
  if (failed(checkCounters(kernel)))
    return failure();
  auto times = countBarriers(kernel);
  for (auto [index, a] : llvm::enumerate(allocs))
    for (AllocOp b : ArrayRef(allocs).drop_front(index + 1)) {
      bool shareBytes = static_cast<int64_t>(*a.getOffset()) < endOf(b) &&
                        static_cast<int64_t>(*b.getOffset()) < endOf(a);
      auto [aFirst, aLast] = liveRange(a, times);
      auto [bFirst, bLast] = liveRange(b, times);
      if (!shareBytes || aLast < bFirst || bLast < aFirst)
        continue;
      InFlightDiagnostic diag = b.emitOpError("'")
                                << b.getName() << "' shares bytes with '"
                                << a.getName()
                                << "' while both are live, expected a "
                                   "barrier between or disjoint bytes";
      diag.attachNote(a.getLoc()) << "the other buffer";
      return diag;
    }
  return success();
}

struct VerifyKernelPass
    : public mega::impl::VerifyKernelPassBase<VerifyKernelPass> {
  using Base::Base;

  void runOnOperation() override {
    for (KernelOp kernel : getOperation().getOps<KernelOp>())
      if (failed(checkKernel(kernel)))
        return signalPassFailure();
  }
};

} // namespace
