// SPDX-License-Identifier: Apache-2.0
/// \file
/// Gathers phases, edges, barriers and their reasons.

#include "Explanation.h"

#include "mega/Analysis/Certificate.h"
#include "mega/Analysis/StageAccess.h"

#include "mlir/IR/BuiltinOps.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/Path.h"

#include <algorithm>

using namespace mlir;
using namespace mega;
using namespace mega::explain;
using llvm::formatv;

/// "file.mlir:10:3", or nothing.
static std::string locationOf(Location location) {
  auto file = location->findInstanceOf<FileLineColLoc>();
  if (!file)
    return "";
  return formatv("{0}:{1}:{2}", llvm::sys::path::filename(file.getFilename()),
                 file.getLine(), file.getColumn());
}

namespace {

/// A stage where it stands.
struct Placed {
  StageOp op;
  int64_t phase, barriersBefore;
  SmallVector<StageAccess> accesses;
};

class Explainer {
public:
  Explainer(KernelOp kernel, const MachineCosts &costs,
            const WorkSetting &setting)
      : kernel(kernel), costs(costs), setting(setting),
        cost(predict(kernel, costs, setting)) {
    placeStages();
  }

  Explanation run() {
    Explanation result;
    result.block = kernel.getSymName().str();
    result.arch = kernel.getTarget().getArch().str();
    result.ctas = setting.ctas;
    result.context = setting.context;
    result.calibrated = costs.calibrated;
    addPhases(result);
    addEdges(result);
    addSyncs(result);
    std::tie(result.lowerBound, result.chain) = certificate();
    result.weightBytes = cost.weightBytes;
    result.stateBytes = cost.stateBytes;
    result.cacheBytes = cost.cacheBytes;
    result.cacheBytesPerToken = cacheRowBytes();
    result.predictedUs = cost.totalUs;
    result.launchUs = costs.launchUs;
    result.rooflineUs = cost.rooflineUs;
    return result;
  }

private:
  void placeStages() {
    int64_t barriers = 0;
    for (Operation &op : kernel.getBody().front()) {
      barriers += isa<GridBarrierOp>(op);
      if (auto phase = dyn_cast<PhaseOp>(op))
        for (StageOp stage : phase.getBody().getOps<StageOp>())
          placed.push_back({stage, int64_t(phase.getIndex()), barriers,
                            collectAccesses(stage)});
    }
  }

  int64_t cacheRowBytes() {
    int64_t bytes = 0;
    for (StateOp state : kernel->getParentOfType<ModuleOp>().getOps<StateOp>())
      if (state.isCache()) {
        int64_t row = state.getTensorType().getElementTypeBitWidth() / 8;
        for (int64_t dim : state.getTensorType().getShape().drop_front())
          row *= dim;
        bytes += row;
      }
    return bytes;
  }

  void addPhases(Explanation &result) {
    for (PhaseCost &phase : cost.phases) {
      PhaseInfo info{int64_t(phase.phase.getIndex()),
                     {},
                     phase.weightBytes(),
                     0,
                     0,
                     phase.waveEfficiency(),
                     phase.workUs,
                     phase.syncUs,
                     0,
                     {},
                     std::nullopt};
      for (auto [stage, work] :
           llvm::zip(phase.phase.getBody().getOps<StageOp>(), phase.stages)) {
        info.stages.push_back({stage.getName().str(),
                               locationOf(stage.getLoc()), work.tiles,
                               work.waveEfficiency, work.split});
        info.stateBytes += work.stateBytes;
        info.cacheBytes += work.cacheBytes;
      }
      for (auto [term, amount] : llvm::zip_equal(costTerms(), phase.amounts)) {
        info.termUs.push_back(amount * costs.phase.lookup(term.key));
        if (term.perTile)
          info.sharedUs += info.termUs.back();
      }
      result.phases.push_back(std::move(info));
    }
  }

  //===--------------------------------------------------------------------===//
  // Edges
  //===--------------------------------------------------------------------===//

  /// Which producers' tiles one consumer's tile needs.
  static std::string typeOf(const StageDependence &edge) {
    if (isa<StringAttr>(edge.later.resource))
      return "state";
    auto buffer = cast<BufferType>(cast<Value>(edge.later.resource).getType());
    if (buffer.getElementType().isInteger())
      return "index";
    if (buffer.getByteSize() * 8 ==
        buffer.getElementType().getIntOrFloatBitWidth())
      return "scalar";
    auto dependsOnTile = [](Operation *op) {
      auto access = op->getAttrOfType<AccessAttr>("access");
      return access && access.getMap().getValue().isFunctionOfDim(0);
    };
    return dependsOnTile(edge.earlier.op) && dependsOnTile(edge.later.op)
               ? "tile_local"
               : "all_to_all";
  }

  /// A load stands where its value was computed; the stage, where it is used.
  static std::string consumerLocation(Placed &stage,
                                      const StageDependence &edge) {
    return locationOf(isa<LoadOp, LoadSumOp>(edge.later.op)
                          ? stage.op.getLoc()
                          : edge.later.op->getLoc());
  }

  int64_t bytesOf(Resource resource) {
    if (auto value = dyn_cast<Value>(resource))
      return cast<BufferType>(value.getType()).getByteSize();
    auto state = SymbolTable::lookupNearestSymbolFrom<StateOp>(
        kernel, cast<StringAttr>(resource));
    int64_t bytes = state.getTensorType().getElementTypeBitWidth() / 8;
    for (int64_t dim : state.getTensorType().getShape())
      bytes *= ShapedType::isDynamic(dim) ? 1 : dim;
    return bytes;
  }

  void addEdges(Explanation &result) {
    for (auto [at, later] : llvm::enumerate(placed))
      for (Placed &earlier : MutableArrayRef(placed).take_front(at)) {
        // One edge a resource and kind.
        llvm::MapVector<std::pair<void *, int>, StageDependence> edges;
        for (const StageDependence &edge :
             collectDependences(earlier.accesses, later.accesses))
          edges.insert(
              {{edge.later.resource.getOpaqueValue(), int(edge.kind)}, edge});
        for (auto &[key, edge] : edges) {
          int64_t between = later.barriersBefore - earlier.barriersBefore;
          result.edges.push_back(
              {earlier.op.getName().str(), later.op.getName().str(),
               describe(edge.later.resource), describe(edge.kind).str(),
               typeOf(edge), locationOf(edge.earlier.op->getLoc()),
               consumerLocation(later, edge), bytesOf(edge.later.resource),
               earlier.phase, later.phase, between <= 1,
               between > 0 ? "barrier" : "counter"});
        }
      }
  }

  /// The scheduler's own proof, if it chose the schedule; else the longest
  /// chain.
  std::pair<int64_t, std::vector<std::string>> certificate() {
    auto links = kernel->getAttrOfType<ArrayAttr>(kBarrierChainAttrName);
    if (!links)
      return longestChain();
    std::vector<std::string> chain;
    for (auto link : links.getAsRange<StringAttr>())
      chain.push_back(link.getValue().str());
    return {int64_t(chain.size()), chain};
  }

  /// The longest chain of dependent stages: how many edges it has, and what
  /// they are.
  std::pair<int64_t, std::vector<std::string>> longestChain() {
    SmallVector<int64_t> length(placed.size(), 0), before(placed.size(), -1);
    for (size_t b = 0; b < placed.size(); ++b)
      for (size_t a = 0; a < b; ++a) {
        auto edges = collectDependences(placed[a].accesses, placed[b].accesses);
        if (edges.empty())
          continue;
        int64_t through = length[a] + 1;
        if (through > length[b] || before[b] < 0) {
          length[b] = std::max(length[b], through);
          before[b] = a;
        }
      }
    int64_t last = -1, most = 0;
    for (auto [index, value] : llvm::enumerate(length))
      if (last < 0 || value > most) {
        last = index;
        most = value;
      }
    std::vector<std::string> chain;
    for (int64_t at = last; at >= 0 && before[at] >= 0; at = before[at])
      if (length[at] > length[before[at]])
        chain.push_back(
            (placed[before[at]].op.getName() + " -> " + placed[at].op.getName())
                .str());
    std::reverse(chain.begin(), chain.end());
    return {most, chain};
  }

  //===--------------------------------------------------------------------===//
  // Synchronisation
  //===--------------------------------------------------------------------===//

  void addSyncs(Explanation &result) {
    result.barriers = result.counterWaits = 0;
    int64_t phase = -1;
    for (Operation &op : kernel.getBody().front()) {
      if (auto at = dyn_cast<PhaseOp>(op)) {
        phase = at.getIndex();
        for (StageOp stage : at.getBody().getOps<StageOp>())
          for (WaitOp wait : stage.getBody().getOps<WaitOp>())
            addCounter(result, stage, wait, phase);
      }
      if (isa<GridBarrierOp>(op))
        addBarrier(result, phase);
    }
  }

  void addBarrier(Explanation &result, int64_t phase) {
    SyncInfo barrier{
        "barrier", result.barriers++, phase, barrierUs(costs), {}, "", ""};
    for (auto [index, edge] : llvm::enumerate(result.edges))
      if (edge.tight && edge.coveredBy == "barrier" &&
          edge.fromPhase <= phase && edge.toPhase > phase)
        barrier.edges.push_back(index);
    barrier.why = whyNotCheaper(result, barrier);
    result.syncs.push_back(std::move(barrier));
  }

  void addCounter(Explanation &result, StageOp stage, WaitOp wait,
                  int64_t phase) {
    double us = counterUs(costs);
    auto counters = wait.getCounters().getDefiningOp<CountersOp>();
    SyncInfo counter{"counter",
                     result.counterWaits++,
                     phase,
                     us,
                     {},
                     "",
                     stage.getName().str(),
                     int64_t(wait.getTarget()),
                     counters ? int64_t(counters.getCount()) : 1};
    for (auto [index, edge] : llvm::enumerate(result.edges))
      if (edge.coveredBy == "counter" && edge.to == counter.stage)
        counter.edges.push_back(index);
    counter.why = formatv("a tile waits for {0} signals at one of {1} "
                          "counters, {2:f2} us against a barrier's {3:f2}",
                          counter.target, counter.count, us, barrierUs(costs));
    result.syncs.push_back(std::move(counter));
  }

  Placed *stageNamed(StringRef name) {
    for (Placed &stage : placed)
      if (stage.op.getName() == name)
        return &stage;
    return nullptr;
  }

  /// What a cheaper synchronisation would be, and what stands against it.
  std::string whyNotCheaper(const Explanation &result,
                            const SyncInfo &barrier) {
    double counter = counterUs(costs);
    // The widest of the edges decides.
    const EdgeInfo *wide = nullptr;
    for (size_t index : barrier.edges) {
      const EdgeInfo &edge = result.edges[index];
      if (edge.type != "tile_local" && (!wide || edge.bytes > wide->bytes))
        wide = &edge;
    }
    if (!wide) {
      if (barrier.edges.empty())
        return "it orders nothing that another barrier does not";
      return formatv("every edge here is tile-local: counters would do, at "
                     "{0:f2} us against {1:f2}; {2}",
                     counter, barrier.predictedUs,
                     counter < barrier.predictedUs
                         ? "this schedule has barriers only"
                         : "the barrier is cheaper");
    }
    Placed *from = stageNamed(wide->from), *to = stageNamed(wide->to);
    std::string text;
    if (wide->type == "index")
      text =
          formatv("'{0}' chooses what '{1}' reads", wide->resource, wide->to);
    else if (wide->type == "scalar")
      text = formatv("all tiles of '{0}' need the one number '{1}'", wide->to,
                     wide->resource);
    else if (wide->type == "state")
      text = formatv("'{0}' and '{1}' share {2}", wide->from, wide->to,
                     wide->resource);
    else
      text = formatv("each of the {0} tiles of '{1}' reads all {2} B of '{3}', "
                     "which {4} tiles write",
                     to->op.getTiles().value_or(0), wide->to, wide->bytes,
                     wide->resource, from->op.getTiles().value_or(0));
    double whole = costs.waitAt(&LoadedCosts::edgeUs, 0);
    double flagged = costs.waitAt(&LoadedCosts::flaggedEdgeUs, 0);
    text += formatv(": a counter would stand for all of them, which is what a "
                    "barrier is; words that carry their own flag would take "
                    "{0:f2} us against {1:f2} with the fetch where nothing "
                    "else runs, but the compiler has no lowering for them",
                    flagged, whole);
    StageWork producer = measureStage(from->op, setting);
    double again = recomputeUs(producer);
    if (producer.weightBytes() > 0)
      text += formatv("; computing '{0}' again in every CTA would read {1:f2} "
                      "MB each, {2:f0} us",
                      wide->from, producer.weightBytes() / 1e6, again);
    return text;
  }

  /// What it takes every CTA to read all of the producer's weights.
  double recomputeUs(const StageWork &producer) const {
    double bytes = double(producer.weightBytes()) * setting.ctas;
    double rate = costs.streamRate(bytes);
    return rate > 0 ? bytes / rate / 1e3 : 0;
  }

  KernelOp kernel;
  const MachineCosts &costs;
  WorkSetting setting;
  TokenCost cost;
  SmallVector<Placed> placed;
};

} // namespace

Explanation mega::explain::explain(KernelOp kernel, const MachineCosts &costs,
                                   const WorkSetting &setting,
                                   std::optional<Measurement> measured) {
  Explanation result = Explainer(kernel, costs, setting).run();
  if (measured)
    for (auto [phase, times] : llvm::zip_equal(result.phases, measured->phases))
      phase.measured = times;
  result.measured = std::move(measured);
  return result;
}

std::optional<PredictionError>
mega::explain::errorOf(const Explanation &explanation) {
  if (!explanation.measured)
    return std::nullopt;
  std::vector<double> errors;
  double measured = 0;
  for (const PhaseInfo &phase : explanation.phases) {
    if (phase.measured->workUs > 0)
      errors.push_back(std::abs(phase.workUs - phase.measured->workUs) /
                       phase.measured->workUs);
    measured += phase.measured->workUs + phase.measured->waitUs;
  }
  std::sort(errors.begin(), errors.end());
  double token = explanation.measured->tokenUs.value_or(measured);
  return PredictionError{errors.empty() ? 0 : errors[errors.size() / 2],
                         std::abs(explanation.predictedUs - token) / token};
}
