// SPDX-License-Identifier: Apache-2.0
/// \file
/// Level 1 to 2: every stage runs in the earliest phase that its dependences
/// allow, and a grid barrier stands between phases.
///
/// A dependence costs one barrier, or none if counters can order the tiles of
/// the two stages. For a fixed set of stages and this choice of synchronisation
/// the result has the fewest barriers possible: the phase of a stage is the
/// length of the longest chain of dependences that ends in it, counting those
/// that need a barrier. One such chain is written beside the program as the
/// certificate.

#include "StageGraph.h"

#include "mega/Analysis/Certificate.h"

#include "mlir/IR/Builders.h"

#include <numeric>

namespace mega {
#define GEN_PASS_DEF_SCHEDULEPHASESPASS
#include "mega/Transforms/Passes.h.inc"
} // namespace mega

using namespace mlir;
using namespace mega;

namespace {

class Scheduler {
public:
  Scheduler(ProgramOp program, const ScheduleOptions &options)
      : program(program),
        graph(program, options.sync == Synchronization::Counters,
              options.waitLimit) {}

  void run() {
    assignPhases();
    if (graph.recomputePublished())
      assignPhases();
    makeRoomForResets();
    writeCertificate();
    graph.forEachCounterEdge(
        [](StageEdge &edge, StageNode &) { edge.useCounters = true; });
    std::vector<int64_t> order(graph.getNodes().size());
    std::iota(order.begin(), order.end(), 0);
    graph.write(order);
  }

private:
  void assignPhases() {
    std::vector<StageNode> &nodes = graph.getNodes();
    for (StageNode &node : nodes)
      for (const StageEdge &edge : node.edges)
        node.phase =
            std::max(node.phase, nodes[edge.earlier].phase + edge.needsBarrier);
  }

  /// Counters become 0 again in another phase than the one that uses them, so
  /// there must be two: the last stage that would wait gets its own.
  void makeRoomForResets() {
    if (graph.countPhases() != 1)
      return;
    StageNode *last = nullptr;
    graph.forEachCounterEdge(
        [&](StageEdge &, StageNode &node) { last = &node; });
    if (!last)
      return;
    last->phase = 1;
    assignPhases();
  }

  /// The chain that proves the number of barriers: from the last phase back
  /// along edges that put each stage where it is.
  void writeCertificate() {
    SmallVector<std::string> chain;
    std::vector<StageNode> &nodes = graph.getNodes();
    const StageNode *at = nullptr;
    for (const StageNode &node : nodes)
      if (!at || node.phase > at->phase)
        at = &node;
    while (at) {
      const StageNode *before = nullptr;
      for (const StageEdge &edge : at->edges) {
        if (nodes[edge.earlier].phase + edge.needsBarrier != at->phase)
          continue;
        before = &nodes[edge.earlier];
        if (edge.needsBarrier)
          chain.push_back(graph.describe(edge, *at).front());
        break;
      }
      if (!before && at->phase > 0)
        chain.push_back("counters need a phase in which they become 0");
      at = before;
    }
    std::reverse(chain.begin(), chain.end());
    OpBuilder builder(program);
    SmallVector<StringRef> refs(chain.begin(), chain.end());
    program->setAttr(kBarrierChainAttrName, builder.getStrArrayAttr(refs));
  }

  ProgramOp program;
  StageGraph graph;
};

struct SchedulePhasesPass
    : public mega::impl::SchedulePhasesPassBase<SchedulePhasesPass> {
  using Base::Base;

  void runOnOperation() override {
    ScheduleOptions options;
    options.sync = sync;
    options.waitLimit = waitLimit;
    for (ProgramOp program : getOperation().getOps<ProgramOp>())
      Scheduler(program, options).run();
  }
};

} // namespace
