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
  /// `file` is where the schedule stands.
  ScheduleReader(ProgramOp program, const ScheduleFile &schedule, Location file)
      : program(program), schedule(schedule), file(file),
        graph(program, /*counters=*/true, std::numeric_limits<int64_t>::max()) {
  }

  LogicalResult apply() {
    if (program.getSymName() != schedule.block)
      return errorAt(program, "is '")
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
  /// An error of `op` that also names the file.
  InFlightDiagnostic errorAt(Operation *op, const Twine &message) {
    InFlightDiagnostic diag = op->emitOpError(message);
    diag.attachNote(file) << "the schedule";
    return diag;
  }

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
          return errorAt(program, "has no stage '")
                 << name << "', which phase " << phase
                 << " of the schedule names";
        if (positions[it->second] >= 0)
          return errorAt(nodes[it->second].op, "'")
                 << name << "' is named twice by the schedule, expected once";
        positions[it->second] = order.size();
        order.push_back(it->second);
        nodes[it->second].phase = phase;
      }
    for (auto [index, node] : llvm::enumerate(nodes))
      if (positions[index] < 0)
        return errorAt(node.op, "'")
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
            errorAt(node.op, "'")
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
        return errorAt(program, "has no stage '")
               << name << "', which counters of the schedule name";
    int64_t earlier = indices[from];
    StageNode &later = nodes[indices[to]];
    auto edge = llvm::find_if(later.edges, [&](const StageEdge &edge) {
      return edge.earlier == earlier;
    });
    if (edge == later.edges.end())
      return errorAt(later.op, "'")
             << to << "' does not depend on '" << from
             << "', expected no counters between them in the schedule";
    if (nodes[earlier].phase != later.phase)
      return errorAt(later.op, "'")
             << to << "' is in phase " << later.phase << " and '" << from
             << "' in phase " << nodes[earlier].phase
             << ", expected one phase for counters between them";
    if (!edge->counters) {
      auto [a, b] = edge->pairs.front();
      InFlightDiagnostic diag =
          errorAt(later.op, "'")
          << to << "' and '" << from
          << "' have no counters that could order them, expected a barrier "
             "for the "
          << describe(kindOf(*a, *b)) << " of " << describe(b->resource);
      diag.attachNote(a->op->getLoc()) << "the earlier access";
      diag.attachNote(b->op->getLoc()) << "the later access";
      return diag;
    }
    if (graph.countPhases() == 1)
      return errorAt(later.op, "'")
             << to
             << "' waits for counters in the only phase, expected "
                "another in which they become 0";
    edge->useCounters = true;
    return success();
  }

  ProgramOp program;
  const ScheduleFile &schedule;
  Location file;
  StageGraph graph;
  llvm::StringMap<int64_t> indices; ///< of nodes, by name
  SmallVector<int64_t> positions;   ///< of nodes in the schedule
  SmallVector<int64_t> order;       ///< of nodes, as the schedule has them
};

/// The place in `file` that the message of an error about it starts with, which
/// it is relieved of; the file's start if there is none.
static FileLineColLoc takePlace(StringRef &message, StringRef file,
                                MLIRContext *context) {
  unsigned line = 1, column = 1;
  message.consume_front(file);
  message.consume_front(":");
  if (!message.consumeInteger(10, line) && message.consume_front(":") &&
      !message.consumeInteger(10, column))
    message.consume_front(":");
  message = message.ltrim();
  return FileLineColLoc::get(context, file, line, column);
}

struct ApplySchedulePass
    : public mega::impl::ApplySchedulePassBase<ApplySchedulePass> {
  using Base::Base;

  void runOnOperation() override {
    ModuleOp module = getOperation();
    Location start = FileLineColLoc::get(&getContext(), file, 1, 1);
    auto buffer = llvm::MemoryBuffer::getFile(file);
    if (!buffer) {
      emitError(start, "cannot read schedule file ")
          << file << ": " << buffer.getError().message();
      return signalPassFailure();
    }
    auto schedule = parseScheduleFile((*buffer)->getBuffer(), file);
    if (!schedule) {
      std::string text = llvm::toString(schedule.takeError());
      StringRef message = text;
      Location place = takePlace(message, file, &getContext());
      emitError(place, message);
      return signalPassFailure();
    }
    for (ProgramOp program : module.getOps<ProgramOp>())
      if (failed(ScheduleReader(program, *schedule, start).apply()))
        return signalPassFailure();
  }
};

} // namespace
