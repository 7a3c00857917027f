// SPDX-License-Identifier: Apache-2.0
/// \file
/// The level-3 boundary: the memory plan. Live ranges are computed here again,
/// from the phases that stand in the kernel.

#include "mega/Analysis/StageAccess.h"
#include "mega/Transforms/Passes.h"

namespace mega {
#define GEN_PASS_DEF_VERIFYKERNELPASS
#include "mega/Transforms/Passes.h.inc"
} // namespace mega

using namespace mlir;
using namespace mega;

namespace {

/// Phases in which a stage touches the buffer.
std::pair<int64_t, int64_t> touchedPhases(AllocOp alloc) {
  int64_t first = std::numeric_limits<int64_t>::max(), last = -1;
  for (Operation *user : alloc.getBuffer().getUsers()) {
    int64_t index = user->getParentOfType<PhaseOp>().getIndex();
    first = std::min(first, index);
    last = std::max(last, index);
  }
  if (alloc.getProbe())
    last = std::numeric_limits<int64_t>::max();
  return {first, last};
}

int64_t endOf(AllocOp alloc) {
  return *alloc.getOffset() + alloc.getBuffer().getType().getByteSize();
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
    if (endOf(alloc) > static_cast<int64_t>(kernel.getWorkspaceBytes()))
      return alloc.emitOpError("ends at byte ")
             << endOf(alloc) << ", expected at most the workspace's "
             << kernel.getWorkspaceBytes();
  }
  for (auto [index, a] : llvm::enumerate(allocs))
    for (AllocOp b : ArrayRef(allocs).drop_front(index + 1)) {
      bool shareBytes = static_cast<int64_t>(*a.getOffset()) < endOf(b) &&
                        static_cast<int64_t>(*b.getOffset()) < endOf(a);
      auto [aFirst, aLast] = touchedPhases(a);
      auto [bFirst, bLast] = touchedPhases(b);
      if (!shareBytes || aLast < bFirst || bLast < aFirst)
        continue;
      InFlightDiagnostic diag = b.emitOpError("'")
                                << b.getName() << "' shares bytes with '"
                                << a.getName()
                                << "' while both are live, expected disjoint "
                                   "phases or disjoint bytes";
      diag.attachNote(a.getLoc()) << "the other buffer";
      return diag;
    }
  return success();
}

struct VerifyKernelPass : public mega::impl::VerifyKernelPassBase<VerifyKernelPass> {
  using Base::Base;

  void runOnOperation() override {
    for (KernelOp kernel : getOperation().getOps<KernelOp>())
      if (failed(checkKernel(kernel)))
        return signalPassFailure();
  }
};

} // namespace
