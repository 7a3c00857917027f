// SPDX-License-Identifier: Apache-2.0
/// \file
/// A level-1 program as a graph of stages, and the phases that are written from
/// it. Who decides the phases is the pass that uses it.

#ifndef MEGA_LIB_TRANSFORMS_STAGEGRAPH_H
#define MEGA_LIB_TRANSFORMS_STAGEGRAPH_H

#include "CounterEdges.h"

#include "mega/Transforms/Passes.h"

#include <limits>
#include <vector>

namespace mega {

/// How a stage depends on an earlier one.
struct StageEdge {
  int64_t earlier; ///< index of the stage
  llvm::SmallVector<AccessPair> pairs;
  /// Values that the later stage computes again if it shares the phase.
  llvm::SmallVector<std::pair<StoreOp, LoadOp>> again;
  /// What covers the other pairs within a phase; none if only a barrier can.
  std::optional<CounterEdge> counters;
  bool needsBarrier = true;
  /// Whether `counters` is to be written.
  bool useCounters = false;
};

struct StageNode {
  StageOp op;
  llvm::SmallVector<TileAccess> accesses;
  std::vector<StageEdge> edges; ///< on the stages before it
  int64_t phase = 0;
};

class StageGraph {
public:
  /// Without `counters`, only barriers order stages. No counter stands for more
  /// than `waitLimit` tiles.
  StageGraph(ProgramOp program, bool counters, int64_t waitLimit)
      : program(program), counters(counters), waitLimit(waitLimit) {
    analyse(/*recompute=*/true);
  }

  std::vector<StageNode> &getNodes() { return nodes; }
  int64_t countPhases() const;

  /// The edges whose ends share a phase and that need counters there.
  template <typename Visit> void forEachCounterEdge(Visit visit) {
    for (StageNode &node : nodes)
      for (StageEdge &edge : node.edges)
        if (edge.counters && nodes[edge.earlier].phase == node.phase)
          visit(edge, node);
  }

  /// Makes stages compute what one of their phase publishes in its prologue.
  /// The graph is new after that, without phases, if it returns true.
  bool recomputePublished();

  /// "producer -> consumer: read after write of x" for each pair of the edge.
  llvm::SmallVector<std::string> describe(const StageEdge &edge,
                                          const StageNode &later) const;

  /// Moves the stages into phases, in the order of `order`, with barriers
  /// between phases and the counters of edges that use them.
  void write(llvm::ArrayRef<int64_t> order);

private:
  void analyse(bool recompute);
  void addEdge(int64_t earlier, int64_t later, bool recompute);
  void writePhases(llvm::ArrayRef<int64_t> order);
  void writeCounters(StageEdge &edge, StageNode &later);

  ProgramOp program;
  bool counters;
  int64_t waitLimit;
  std::vector<StageNode> nodes;
  llvm::SmallVector<PhaseOp> phases;
};

} // namespace mega

#endif // MEGA_LIB_TRANSFORMS_STAGEGRAPH_H
