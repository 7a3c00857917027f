// SPDX-License-Identifier: Apache-2.0
/// \file
/// Level 1 to 2 as a schedule file says. It fails where the file does not fit
/// the block or turns a dependence round; whether every dependence is ordered
/// is for -mega-verify-schedule to tell.

#include "StageGraph.h"

#include "mega/Analysis/Dependence.h"
#include "mega/Transforms/ScheduleFile.h"

#include "llvm/ADT/StringMap.h"
#include "llvm/Support/MemoryBuffer.h"

namespace mega {
#define GEN_PASS_DEF_APPLYSCHEDULEPASS
#include "mega/Transforms/Passes.h.inc"
} // namespace mega

using namespace mlir;
using namespace mega;

namespace {

class ScheduleReader {
public:
  ScheduleReader(ProgramOp program, const ScheduleFile &schedule)
      : program(program), schedule(schedule),
        graph(program, /*counters=*/true, std::numeric_limits<int64_t>::max()) {
  }

  LogicalResult apply() {
    if (program.getSymName() != schedule.block)
      return program.emitOpError("is '")
             << program.getSymName() << "', expected '" << schedule.block
             << "', which the schedule is for";
    if (failed(place()) || failed(checkOrder()))
      return failure();
    if (graph.recomputePublished() && failed(place()))
      return failure();
    for (const auto &[from, to] : schedule.counters)
      if (failed(useCounters(from, to)))
        return failure();
    graph.write(order);
    return success();
  }

private:
  /// Gives each stage its phase and its place.
  LogicalResult place() {
    std::vector<StageNode> &nodes = graph.getNodes();
    indices.clear();
    order.clear();
    for (auto [index, node] : llvm::enumerate(nodes))
      indices[node.op.getName()] = index;
    positions.assign(nodes.size(), -1);
    for (auto [phase, names] : llvm::enumerate(schedule.phases))
      for (const std::string &name : names) {
        auto it = indices.find(name);
        if (it == indices.end())
          return program.emitOpError("has no stage '")
                 << name << "', which phase " << phase
                 << " of the schedule names";
        if (positions[it->second] >= 0)
          return nodes[it->second].op.emitOpError("'")
                 << name << "' is named twice by the schedule, expected once";
        positions[it->second] = order.size();
        order.push_back(it->second);
        nodes[it->second].phase = phase;
      }
    for (auto [index, node] : llvm::enumerate(nodes))
      if (positions[index] < 0)
        return node.op.emitOpError("'")
               << node.op.getName()
               << "' is in no phase of the schedule, expected one";
    return success();
  }

  /// A schedule runs dependent stages in the program's order.
  LogicalResult checkOrder() {
    std::vector<StageNode> &nodes = graph.getNodes();
    for (auto [index, node] : llvm::enumerate(nodes))
      for (const StageEdge &edge : node.edges) {
        if (positions[edge.earlier] < positions[index])
          continue;
        auto [a, b] = edge.pairs.front();
        InFlightDiagnostic diag =
            node.op.emitOpError("'")
            << node.op.getName() << "' runs before '"
            << nodes[edge.earlier].op.getName()
            << "' in the schedule, expected after it for the "
            << describe(kindOf(*a, *b)) << " of " << describe(b->resource);
        diag.attachNote(a->op->getLoc()) << "the earlier access";
        diag.attachNote(b->op->getLoc()) << "the later access";
        return diag;
      }
    return success();
  }

  LogicalResult useCounters(const std::string &from, const std::string &to) {
    std::vector<StageNode> &nodes = graph.getNodes();
    for (const std::string &name : {from, to})
      if (!indices.contains(name))
        return program.emitOpError("has no stage '")
               << name << "', which counters of the schedule name";
    int64_t earlier = indices[from];
    StageNode &later = nodes[indices[to]];
    auto edge = llvm::find_if(later.edges, [&](const StageEdge &edge) {
      return edge.earlier == earlier;
    });
    if (edge == later.edges.end())
      return later.op.emitOpError("'")
             << to << "' does not depend on '" << from
             << "', expected no counters between them in the schedule";
    if (nodes[earlier].phase != later.phase)
      return later.op.emitOpError("'")
             << to << "' is in phase " << later.phase << " and '" << from
             << "' in phase " << nodes[earlier].phase
             << ", expected one phase for counters between them";
    if (!edge->counters) {
      auto [a, b] = edge->pairs.front();
      InFlightDiagnostic diag =
          later.op.emitOpError("'")
          << to << "' and '" << from
          << "' have no counters that could order them, expected a barrier "
             "for the "
          << describe(kindOf(*a, *b)) << " of " << describe(b->resource);
      diag.attachNote(a->op->getLoc()) << "the earlier access";
      diag.attachNote(b->op->getLoc()) << "the later access";
      return diag;
    }
    if (graph.countPhases() == 1)
      return later.op.emitOpError("'")
             << to
             << "' waits for counters in the only phase, expected "
                "another in which they become 0";
    edge->useCounters = true;
    return success();
  }

  ProgramOp program;
  const ScheduleFile &schedule;
  StageGraph graph;
  llvm::StringMap<int64_t> indices; ///< of nodes, by name
  SmallVector<int64_t> positions;   ///< of nodes in the schedule
  SmallVector<int64_t> order;       ///< of nodes, as the schedule has them
};

struct ApplySchedulePass
    : public mega::impl::ApplySchedulePassBase<ApplySchedulePass> {
  using Base::Base;

  void runOnOperation() override {
    ModuleOp module = getOperation();
    auto buffer = llvm::MemoryBuffer::getFile(file);
    if (!buffer) {
      module.emitError("cannot read schedule file ")
          << file << ": " << buffer.getError().message();
      return signalPassFailure();
    }
    auto schedule = parseScheduleFile((*buffer)->getBuffer(), file);
    if (!schedule) {
      module.emitError(llvm::toString(schedule.takeError()));
      return signalPassFailure();
    }
    for (ProgramOp program : module.getOps<ProgramOp>())
      if (failed(ScheduleReader(program, *schedule).apply()))
        return signalPassFailure();
  }
};

} // namespace
