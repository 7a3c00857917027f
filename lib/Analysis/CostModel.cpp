// SPDX-License-Identifier: Apache-2.0
/// \file
/// The terms, the prediction and the fit.

#include "mega/Analysis/CostModel.h"

#include <cmath>

using namespace mlir;
using namespace mega;

namespace {

/// What a term may look at.
struct TermInput {
  ArrayRef<StageWork> stages;
  const MachineCosts &costs;
  const WorkSetting &setting;

  /// A sum over the phase's stages.
  template <typename Member> double sum(Member &&member) const {
    double total = 0;
    for (const StageWork &stage : stages)
      total += double(member(stage));
    return total;
  }
  /// Microseconds in which the machine streams `bytes`.
  double streamUs(double bytes) const {
    double rate = costs.streamRate(bytes);
    return rate > 0 ? bytes / rate / 1e3 : 0;
  }
};

struct Term : CostTerm {
  double (*amount)(const TermInput &);
};

} // namespace

/// A term is one entry; a new one needs a coefficient in the machine files.
static const Term terms[] = {
    {{"phase_us", "1: starting the phase, the first load, the last store",
      false},
     [](const TermInput &) { return 1.0; }},
    {{"stage_us", "stages after the first", false},
     [](const TermInput &in) { return double(in.stages.size()) - 1; }},
    {{"norm_us", "norms in the prologue, which every CTA computes", false},
     [](const TermInput &in) {
       return in.sum([](const StageWork &w) { return w.norms; });
     }},
    {{"router_us", "choices of experts in the prologue", false},
     [](const TermInput &in) {
       return in.sum([](const StageWork &w) { return w.routers; });
     }},
    {{"fetch_us_per_kib", "KiB of vectors that a CTA loads", false},
     [](const TermInput &in) {
       return in.sum([](const StageWork &w) { return w.fetchedBytes; }) / 1024;
     }},
    {{"stream_share",
      "us to stream the weights, were all CTAs' as many as "
      "the largest's",
      true},
     [](const TermInput &in) {
       return in.streamUs(in.sum([&](const StageWork &w) {
         return w.largestUnits * w.unitBytes * in.setting.ctas + w.plainBytes;
       }));
     }},
    {{"unit_ns", "thousands of weight units of the largest CTA", true},
     [](const TermInput &in) {
       return in.sum([](const StageWork &w) { return w.largestUnits; }) / 1e3;
     }},
    {{"state_share", "us to stream states, read and written, and caches", true},
     [](const TermInput &in) {
       return in.streamUs(in.sum(
           [](const StageWork &w) { return w.stateBytes + w.cacheBytes; }));
     }},
    {{"cache_us_per_mmac", "millions of multiplications over a cache", true},
     [](const TermInput &in) {
       return in.sum([](const StageWork &w) { return w.cacheMacs; }) / 1e6;
     }},
};

ArrayRef<CostTerm> mega::costTerms() {
  static const SmallVector<CostTerm> list = [] {
    SmallVector<CostTerm> all;
    for (const Term &term : terms)
      all.push_back(term);
    return all;
  }();
  return list;
}

int64_t PhaseCost::weightBytes() const {
  int64_t bytes = 0;
  for (const StageWork &stage : stages)
    bytes += stage.weightBytes();
  return bytes;
}

double PhaseCost::waveEfficiency() const {
  double weighted = 0, total = 0;
  for (const StageWork &stage : stages) {
    double bytes = std::max<double>(
        1, double(stage.weightBytes() + stage.stateBytes + stage.cacheBytes));
    weighted += bytes * stage.waveEfficiency;
    total += bytes;
  }
  return total > 0 ? weighted / total : 1;
}

double mega::barrierUs(const MachineCosts &costs) {
  return costs.waitAt(&LoadedCosts::barrierUs, 0) +
         costs.phase.lookup(kSkewKey);
}

double mega::counterUs(const MachineCosts &costs) {
  return costs.waitAt(&LoadedCosts::counterUs, 0) +
         costs.phase.lookup(kCounterSkewKey);
}

TokenCost mega::predict(Operation *container, const MachineCosts &costs,
                        const WorkSetting &setting) {
  TokenCost token;
  for (Operation &op : container->getRegion(0).front()) {
    if (isa<GridBarrierOp>(op)) {
      ++token.barriers;
      if (!token.phases.empty())
        token.phases.back().syncUs += barrierUs(costs);
      continue;
    }
    auto phase = dyn_cast<PhaseOp>(op);
    if (!phase)
      continue;
    PhaseCost cost;
    cost.phase = phase;
    for (StageOp stage : phase.getBody().getOps<StageOp>()) {
      // A stage that waits for counters does so once, for its first tile.
      if (!stage.getBody().getOps<WaitOp>().empty()) {
        ++token.counterWaits;
        cost.syncUs += counterUs(costs);
      }
      cost.stages.push_back(measureStage(stage, setting));
      token.weightBytes += cost.stages.back().weightBytes();
      token.stateBytes += cost.stages.back().stateBytes;
      token.cacheBytes += cost.stages.back().cacheBytes;
    }
    TermInput input{cost.stages, costs, setting};
    for (const Term &term : terms) {
      cost.amounts.push_back(term.amount(input));
      cost.workUs += cost.amounts.back() * costs.phase.lookup(term.key);
    }
    token.phases.push_back(std::move(cost));
  }
  token.totalUs = costs.launchUs;
  for (const PhaseCost &phase : token.phases)
    token.totalUs += phase.workUs + phase.syncUs;
  double bytes =
      double(token.weightBytes + token.stateBytes + token.cacheBytes);
  double rate = costs.streamRate(bytes);
  token.rooflineUs = rate > 0 ? bytes / rate / 1e3 : 0;
  return token;
}

llvm::StringMap<double> mega::fitPhaseCosts(const TokenCost &cost,
                                            ArrayRef<double> measured,
                                            const MachineCosts &costs) {
  // Ridge regression towards the present coefficients, in units of them, by
  // coordinate descent with the coefficients clipped at 0.
  constexpr double kRidge = 1e-4;
  size_t count = std::size(terms);
  SmallVector<double> present, value;
  for (const Term &term : terms) {
    present.push_back(costs.phase.lookup(term.key));
    value.push_back(present.back());
  }
  SmallVector<std::pair<ArrayRef<double>, double>> rows;
  for (auto [phase, us] : llvm::zip(cost.phases, measured))
    if (us > 0)
      rows.push_back({phase.amounts, us});
  double ridge = kRidge * double(rows.size());
  for (int sweep = 0; sweep < 20000; ++sweep) {
    double moved = 0;
    for (size_t i = 0; i < count; ++i) {
      // Coefficients that are 0 now have no size to be measured by.
      double pull = present[i] > 0 ? ridge / (present[i] * present[i]) : 0;
      double slope = pull * present[i], curve = pull;
      for (auto [amounts, us] : rows) {
        double others = 0;
        for (size_t j = 0; j < count; ++j)
          others += j == i ? 0 : amounts[j] * value[j];
        slope += amounts[i] * (us - others) / (us * us);
        curve += amounts[i] * amounts[i] / (us * us);
      }
      if (curve <= 0)
        continue;
      double next = std::max(0.0, slope / curve);
      moved = std::max(moved, std::abs(next - value[i]));
      value[i] = next;
    }
    if (moved < 1e-9)
      break;
  }
  llvm::StringMap<double> fitted = costs.phase;
  for (size_t i = 0; i < count; ++i)
    fitted[terms[i].key] = std::round(value[i] * 1e5) / 1e5;
  return fitted;
}
