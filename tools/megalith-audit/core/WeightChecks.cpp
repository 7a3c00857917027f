// SPDX-License-Identifier: Apache-2.0
/// \file
/// Every weight matters: each tensor, and each expert's part of a stack, is
/// zeroed in turn, and some token's output must change. A routed expert is only
/// read by tokens that are routed to it, so tokens are made until the routers'
/// probes have named every expert, and those that name it are tried first.

#include "Checks.h"
#include "WeightSweep.h"

#include <algorithm>
#include <set>

using namespace mega::audit;
using namespace megalith;

namespace {

/// Tokens from one start, what they give, and what their routers chose.
class Inputs {
public:
  Inputs(Bench &bench) : bench(bench), start(bench.start()) {
    add();
    reached.resize(choices.front().size());
    note();
  }

  /// Adds tokens until each router has chosen each of `experts`, or there are
  /// enough.
  void reachAll(int64_t experts) {
    auto all = [&] {
      return std::all_of(reached.begin(), reached.end(), [&](const auto &ids) {
        return int64_t(ids.size()) >= experts;
      });
    };
    while (!reached.empty() && !all() && size() < bench.plan.maxInputs) {
      add();
      note();
    }
  }
  void addUpTo(int64_t count) {
    while (size() < std::min(count, bench.plan.maxInputs)) {
      add();
      note();
    }
  }

  int64_t size() const { return int64_t(outputs.size()); }

  /// Whether every router has chosen the expert for some token.
  bool everyRouterReached(int64_t expert) const {
    return !reached.empty() &&
           std::all_of(reached.begin(), reached.end(), [&](const auto &ids) {
             return ids.count(int32_t(expert)) != 0;
           });
  }

  /// Tokens in the order to try them: for a routed expert, those whose routers
  /// chose it first.
  std::vector<int64_t> orderFor(int64_t expert) const {
    std::vector<int64_t> order(size());
    for (int64_t i = 0; i < size(); ++i)
      order[i] = i;
    if (expert >= 0)
      std::stable_partition(order.begin(), order.end(), [&](int64_t i) {
        for (const Choice &choice : choices[i])
          if (std::count(choice.ids.begin(), choice.ids.end(),
                         int32_t(expert)) != 0)
            return true;
        return false;
      });
    return order;
  }

  /// Whether token `index` gives another output than it gave at first.
  bool changes(int64_t index) { return !same(run(index), outputs[index]); }

private:
  Tensor run(int64_t index) {
    bench.subject.begin(start);
    return bench.subject.step(bench.token(index));
  }
  void add() {
    outputs.push_back(run(size()));
    choices.push_back(bench.subject.choices());
  }
  void note() {
    for (size_t router = 0; router < reached.size(); ++router)
      reached[router].insert(choices.back()[router].ids.begin(),
                             choices.back()[router].ids.end());
  }

  Bench &bench;
  Start start;
  std::vector<Tensor> outputs;
  std::vector<std::vector<Choice>> choices;
  /// By router: every expert it has chosen.
  std::vector<std::set<int32_t>> reached;
};

/// Weights with a part zeroed while this lives.
class Zeroed {
public:
  Zeroed(Subject &subject, const PackedPart &part)
      : subject(subject), part(part) {
    subject.writeWeights(part.offset, part.zeroed.data(), part.zeroed.size());
  }
  /// Puts the part back; throws.
  void restore() {
    subject.writeWeights(part.offset, part.present.data(), part.present.size());
    restored = true;
  }
  ~Zeroed() {
    if (!restored)
      (void)megalith::guard([&] { restore(); });
  }

private:
  Subject &subject;
  const PackedPart &part;
  bool restored = false;
};

/// Whether only tokens routed to it read the part.
bool isRouted(const Manifest &manifest, const WeightPart &part) {
  const RegionDesc &region = manifest.packed[part.region];
  size_t width = region.layout == PackLayout::MmaM16K128Pair ? 2 : 1;
  // Stacks after the first of a region are the shared experts'.
  return part.expert >= 0 && part.source < width &&
         manifest.weights[region.sources[part.source]].experts() > 1;
}

std::string namesText(const std::vector<std::string> &names) {
  constexpr size_t listed = 4;
  std::string text;
  for (size_t i = 0; i < std::min(listed, names.size()); ++i)
    text += fmt::format("{}'{}'", i ? ", " : "", names[i]);
  if (names.size() > listed)
    text += fmt::format(" and {} more", names.size() - listed);
  return text;
}

} // namespace

Finding mega::audit::checkWeights(Bench &bench) {
  constexpr int64_t plainTokens = 4;
  const Manifest &manifest = bench.subject.manifest();
  std::vector<WeightPart> parts = partsOf(manifest);
  int64_t experts = 0;
  for (const WeightPart &part : parts)
    if (isRouted(manifest, part))
      experts = std::max(experts, part.expert + 1);
  Inputs inputs(bench);
  inputs.addUpTo(plainTokens);
  inputs.reachAll(experts);

  std::vector<std::string> unread, unreached;
  size_t alreadyZero = 0, done = 0;
  for (const WeightPart &part : parts) {
    if (bench.progress)
      bench.progress(fmt::format("{} of {} parts", done++, parts.size()));
    PackedPart packed = packPart(manifest, bench.weights, part);
    if (packed.present == packed.zeroed) {
      ++alreadyZero;
      continue;
    }
    bool routed = isRouted(manifest, part);
    std::vector<int64_t> order = inputs.orderFor(routed ? part.expert : -1);
    if (!routed)
      order.resize(std::min<size_t>(order.size(), plainTokens));
    Zeroed zeroed(bench.subject, packed);
    bool read = std::any_of(order.begin(), order.end(), [&](int64_t index) {
      return inputs.changes(index);
    });
    zeroed.restore();
    if (!read && routed && !inputs.everyRouterReached(part.expert))
      unreached.push_back(part.name);
    else if (!read)
      unread.push_back(part.name);
  }
  if (!unread.empty())
    return {"", Outcome::Fail,
            fmt::format("no output changes when it is zeroed: {}",
                        namesText(unread))};
  std::string detail = fmt::format(
      "{} parts zeroed in turn, each changes an output of {} tokens",
      parts.size() - alreadyZero - unreached.size(), inputs.size());
  if (alreadyZero != 0)
    detail += fmt::format("; {} are zero already", alreadyZero);
  if (unreached.empty())
    return {"", Outcome::Pass, detail};
  return {"", Outcome::Partial,
          fmt::format("{}; no token is routed to {}", detail,
                      namesText(unreached))};
}
