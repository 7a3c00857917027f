// SPDX-License-Identifier: Apache-2.0
/// \file
/// What is overwritten in place between steps changes the output, as the
/// reference says.

#include "Checks.h"

#include <algorithm>

using namespace mega::audit;
using namespace megalith;

namespace {

/// Outputs compared with the reference's, over one check.
class Comparison {
public:
  explicit Comparison(const Bench &bench) : bench(bench) {}

  /// Takes one output that the reference has just made, too. False if a router
  /// chose otherwise at a tie: what follows is another computation.
  bool add(const std::string &what, const Tensor &found, const Tensor &wanted) {
    double error = distance(found, wanted);
    if (error <= bench.plan.maxError) {
      worst = std::max(worst, error);
      ++good;
    } else if (isTie()) {
      ++ties;
      return false;
    } else {
      wrong += fmt::format("{}{} is off by {:.1e}", wrong.empty() ? "" : "; ",
                           what, error);
    }
    return true;
  }

  /// The finding, given what else is wrong and how many changes were seen.
  Finding finding(std::string problems, const std::string &seen) const {
    if (!wrong.empty())
      problems += (problems.empty() ? "" : "; ") + wrong +
                  fmt::format(" from the reference, expected {:.0e} at most",
                              bench.plan.maxError);
    if (!problems.empty())
      return {"", Outcome::Fail, problems};
    if (!bench.oracle)
      return {"", Outcome::Partial,
              seen + "; not compared: no description (--block=FILE)"};
    std::string detail =
        fmt::format("{}; reference agrees to {:.1e}", seen, worst);
    if (ties != 0)
      detail += fmt::format(", {} of {} not comparable: a router's tie", ties,
                            good + ties);
    return {"", good == 0 ? Outcome::Partial : Outcome::Pass, detail};
  }

private:
  /// Whether the first router that chose another set of experts than the
  /// reference was close to it. The same choice excuses nothing.
  bool isTie() const {
    std::vector<Choice> found = bench.subject.choices();
    for (const Choice &wanted : bench.oracle->choices())
      for (Choice &choice : found) {
        if (choice.probe != wanted.probe)
          continue;
        std::vector<int32_t> ids = wanted.ids;
        std::sort(ids.begin(), ids.end());
        std::sort(choice.ids.begin(), choice.ids.end());
        if (ids != choice.ids)
          return wanted.gap <= bench.plan.tieGap;
      }
    return false;
  }

  const Bench &bench;
  std::string wrong;
  double worst = 0;
  int good = 0, ties = 0;
};

} // namespace

Finding mega::audit::checkReference(Bench &bench) {
  constexpr int64_t steps = 3;
  Comparison comparison(bench);
  bench.subject.begin(bench.start());
  if (bench.oracle)
    bench.oracle->begin(bench.start());
  std::string problems;
  for (int64_t i = 0; i < steps; ++i) {
    Tensor out = bench.subject.step(bench.token(i));
    if (!finite(out))
      problems = fmt::format("step {} gives numbers that are not finite", i);
    if (bench.oracle && !comparison.add(fmt::format("step {}", i), out,
                                        bench.oracle->step(bench.token(i))))
      break;
  }
  return comparison.finding(problems, fmt::format("{} steps from context {}",
                                                  steps, bench.plan.context));
}

Finding mega::audit::checkInputs(Bench &bench) {
  Comparison comparison(bench);
  // The second step reads the vector where the first one's was.
  bench.subject.begin(bench.start());
  bench.subject.step(bench.token(0));
  Tensor kept = bench.subject.step(bench.token(0));
  bench.subject.begin(bench.start());
  bench.subject.step(bench.token(0));
  Tensor changed = bench.subject.step(bench.token(1));
  if (bench.oracle) {
    bench.oracle->begin(bench.start());
    bench.oracle->step(bench.token(0));
    comparison.add("the output", changed, bench.oracle->step(bench.token(1)));
  }
  return comparison.finding(
      same(kept, changed) ? "another input gives the same output" : "",
      "the output follows the input");
}

/// Overwrites each state of one kind in turn, between two steps.
static Finding overwriteEach(Bench &bench, bool caches) {
  const Manifest &manifest = bench.subject.manifest();
  Comparison comparison(bench);
  bench.subject.begin(bench.start());
  bench.subject.step(bench.token(0));
  Tensor kept = bench.subject.step(bench.token(1));
  int64_t position = bench.plan.context + 1;
  TensorMap others = bench.start(/*salt=*/1, position).states;
  std::string problems;
  int count = 0;
  for (const StateDesc &desc : manifest.states) {
    if (desc.isCache() != caches)
      continue;
    ++count;
    const Tensor &other = others.tensors.at(desc.name);
    bench.subject.begin(bench.start());
    bench.subject.step(bench.token(0));
    bench.subject.setState(desc.name, other);
    Tensor changed = bench.subject.step(bench.token(1));
    if (same(kept, changed))
      problems += fmt::format("{}overwriting '{}' changes nothing",
                              problems.empty() ? "" : "; ", desc.name);
    if (!bench.oracle)
      continue;
    bench.oracle->begin(bench.start());
    bench.oracle->step(bench.token(0));
    Start replaced;
    replaced.states.tensors[desc.name] = other;
    replaced.position = position;
    bench.oracle->begin(replaced);
    comparison.add(fmt::format("the output after overwriting '{}'", desc.name),
                   changed, bench.oracle->step(bench.token(1)));
  }
  const char *kind = caches ? "caches" : "states";
  if (count == 0)
    return {"", Outcome::Pass, fmt::format("the block has no {}", kind)};
  return comparison.finding(
      problems, fmt::format("each of {} {} changes the output", count, kind));
}

Finding mega::audit::checkStates(Bench &bench) {
  return overwriteEach(bench, /*caches=*/false);
}

Finding mega::audit::checkCaches(Bench &bench) {
  return overwriteEach(bench, /*caches=*/true);
}
