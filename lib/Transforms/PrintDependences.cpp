// SPDX-License-Identifier: Apache-2.0
/// \file
/// Prints the dependence analysis alone.

#include "mega/Analysis/Dependence.h"
#include "mega/Transforms/Passes.h"

namespace mega {
#define GEN_PASS_DEF_PRINTDEPENDENCESPASS
#include "mega/Transforms/Passes.h.inc"
} // namespace mega

using namespace mlir;
using namespace mega;

namespace {

/// "3", or "3..5" for a run, or "3..9 (4 of them)".
void printTiles(ArrayRef<int64_t> tiles, llvm::raw_ostream &os) {
  os << tiles.front();
  if (tiles.size() == 1)
    return;
  os << ".." << tiles.back();
  if (tiles.back() - tiles.front() + 1 != int64_t(tiles.size()))
    os << " (" << tiles.size() << " of them)";
}

void print(Dependence edge, llvm::raw_ostream &os) {
  os << edge.earlierStage.getName() << " -> "
     << (edge.carried ? "next step's " : "") << edge.laterStage.getName()
     << ": " << describe(edge.kind) << " of ";
  if (edge.isReuse())
    os << describe(edge.earlier->resource) << "'s bytes by ";
  os << describe(edge.later->resource) << ", " << describe(edge.shape) << "; ";
  // The first tile that waits for anything.
  SmallVector<int64_t> before;
  int64_t tile = edge.later->begin;
  while ((before = edge.tilesBefore(tile)).empty())
    ++tile;
  if (edge.later->isPrologue())
    os << "the prologue";
  else
    os << "tile " << tile;
  os << " after ";
  if (edge.earlier->isPrologue()) {
    os << "all prologues\n";
    return;
  }
  os << (before.size() == 1 ? "tile " : "tiles ");
  printTiles(before, os);
  os << "\n";
}

struct PrintDependencesPass
    : public mega::impl::PrintDependencesPassBase<PrintDependencesPass> {
  using Base::Base;

  void runOnOperation() override {
    for (Operation &op : getOperation().getBodyRegion().front()) {
      if (!isa<ProgramOp, KernelOp>(op))
        continue;
      llvm::outs() << "dependences of " << cast<SymbolOpInterface>(op).getName()
                   << "\n";
      DependenceAnalysis analysis(&op);
      for (const Dependence &edge : analysis.getDependences()) {
        llvm::outs() << "  ";
        print(edge, llvm::outs());
      }
    }
    markAllAnalysesPreserved();
  }
};

} // namespace
