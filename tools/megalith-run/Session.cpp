// SPDX-License-Identifier: Apache-2.0
/// \file
/// Runs every (context, seed) pair of the command line and reports.

#include "Session.h"

#include "Report.h"

#include "llvm/Support/raw_ostream.h"

#include <algorithm>

using namespace llvm;
using namespace mega::run;

namespace {

/// All that stays the same from case to case.
class Session {
public:
  explicit Session(const Options &options) : options(options) {}

  Error open();
  Expected<bool> run();

private:
  Expected<std::unique_ptr<Executor>> makeSubject(int64_t rows);
  Expected<CaseInput> loadCase(int64_t context, uint64_t seed);
  Expected<bool> runPair(int64_t context, uint64_t seed);
  Error measure(const CaseInput &input, CaseOutput &output);
  Error reportNoise(const CaseInput &input, const CaseOutput &wanted);
  StringRef outcomeOf(const Verdict &verdict) const;

  const Options &options;
  std::unique_ptr<Description> description;
  megalith::TensorMap weights;
  /// The only case of a run that is no sweep; it sizes the caches.
  std::optional<CaseInput> single;
  std::unique_ptr<Executor> subject;
  /// Null unless something wants the reference beside the subject.
  std::unique_ptr<Executor> oracle;
};

} // namespace

Expected<std::unique_ptr<Executor>> Session::makeSubject(int64_t rows) {
  switch (options.target) {
  case Options::Target::Reference:
    return makeReferenceExecutor(*description, weights, options.threads,
                                 options.relaxed);
  case Options::Target::Cuda:
    return makeCudaExecutor(*description, weights, options.device, rows);
  case Options::Target::Sim:
    return makeSimExecutor(*description, weights, options.sim, rows);
  }
  llvm_unreachable("unknown target");
}

Error Session::open() {
  auto loaded = Description::load(options);
  if (!loaded)
    return loaded.takeError();
  description = std::move(*loaded);
  const megalith::Manifest &manifest = description->manifest();
  if (options.feedOutput && (manifest.input.shape != manifest.output.shape ||
                             manifest.input.dtype != manifest.output.dtype))
    return createStringError("--feed=output wants an output of the input's "
                             "type");
  int64_t rows =
      *std::max_element(options.contexts.begin(), options.contexts.end());
  if (!options.sweep) {
    auto input = loadCase(options.contexts.front(), options.seeds.front());
    if (!input)
      return input.takeError();
    single = std::move(*input);
    rows = single->initial.context;
  }
  auto tensors = loadWeights(options, manifest);
  if (!tensors)
    return tensors.takeError();
  weights = std::move(*tensors);
  // Timing runs one step to warm up.
  rows += options.steps + (options.timedSteps ? options.timedSteps + 1 : 0);
  auto made = makeSubject(rows);
  if (!made)
    return made.takeError();
  subject = std::move(*made);
  if (!options.check && !options.noise)
    return Error::success();
  if (!description->block())
    return createStringError("--noise has no description, expected "
                             "--block=FILE");
  auto reference = makeReferenceExecutor(*description, weights, options.threads,
                                         options.relaxed);
  if (!reference)
    return reference.takeError();
  oracle = std::move(*reference);
  return Error::success();
}

Expected<CaseInput> Session::loadCase(int64_t context, uint64_t seed) {
  const megalith::Manifest &manifest = description->manifest();
  uint64_t stateSeed = options.sweep ? seed : options.state.seed.value_or(0);
  uint64_t inputSeed =
      options.sweep ? seed + 1 : options.input.seed.value_or(0);
  auto initial = loadStates(options, manifest, context, stateSeed);
  if (!initial)
    return initial.takeError();
  auto hidden = loadInputs(options, manifest, inputSeed);
  if (!hidden)
    return hidden.takeError();
  return CaseInput{std::move(*initial), std::move(*hidden), options.steps,
                   options.feedOutput};
}

Error Session::measure(const CaseInput &input, CaseOutput &output) {
  if (options.timedSteps == 0)
    return Error::success();
  auto time = subject->timeSteps(input.hidden.front(), options.timedSteps);
  if (!time)
    return time.takeError();
  output.stepTime = *time;
  return Error::success();
}

Error Session::reportNoise(const CaseInput &input, const CaseOutput &wanted) {
  auto moved =
      runCase(*oracle, withNoise(input), description->manifest(), false);
  if (!moved)
    return moved.takeError();
  printNoise(compare(*moved, wanted));
  return Error::success();
}

/// Feeding outputs back amplifies any difference, so it is not judged. Once a
/// router has chosen otherwise, what follows is another computation: it is a
/// tie if the reference was close to it, and a failure if not.
StringRef Session::outcomeOf(const Verdict &verdict) const {
  if (options.feedOutput)
    return "reported";
  if (const RoutingDifference *first = verdict.firstDifference())
    return first->gap <= options.tieGap ? "tie" : "FAIL";
  Distance worst = verdict.worstHidden();
  worsen(worst, verdict.worstState().second);
  return worst.cosine >= options.minCosine && worst.relative <= options.maxError
             ? "ok"
             : "FAIL";
}

Expected<bool> Session::runPair(int64_t context, uint64_t seed) {
  const megalith::Manifest &manifest = description->manifest();
  if (options.sweep) {
    auto loaded = loadCase(context, seed);
    if (!loaded)
      return loaded.takeError();
    single = std::move(*loaded);
  }
  const CaseInput &input = *single;
  bool wantStates = options.check || !options.output.empty();
  auto output = runCase(*subject, input, manifest, wantStates);
  if (!output)
    return output.takeError();
  if (Error error = measure(input, *output))
    return error;
  std::optional<CaseOutput> wanted;
  if (oracle) {
    auto ran = runCase(*oracle, input, manifest, wantStates);
    if (!ran)
      return ran.takeError();
    wanted = std::move(*ran);
  }
  std::optional<Verdict> verdict;
  if (options.check)
    verdict = compare(*output, *wanted);
  StringRef outcome = verdict ? outcomeOf(*verdict) : "";
  printRow({input.initial.context, seed}, *output,
           verdict ? &*verdict : nullptr, outcome);
  if (!options.sweep || outcome == "FAIL")
    printDetails(*output, verdict ? &*verdict : nullptr);
  if (verdict)
    printRouting(*verdict);
  if (options.noise)
    if (Error error = reportNoise(input, *wanted))
      return error;
  if (!options.output.empty())
    if (Error error = writeOutput(options.output, *output))
      return error;
  return outcome != "FAIL";
}

Expected<bool> Session::run() {
  outs() << "executor: " << subject->name() << "\n";
  printHeader(options.check);
  int64_t failures = 0, cases = 0;
  for (int64_t context : options.contexts)
    for (uint64_t seed : options.seeds) {
      auto passed = runPair(context, seed);
      if (!passed)
        return passed.takeError();
      failures += !*passed;
      ++cases;
    }
  if (options.check)
    outs() << failures << " of " << cases << " failed\n";
  return failures == 0;
}

Expected<bool> mega::run::runSession(const Options &options) {
  Session session(options);
  if (Error error = session.open())
    return error;
  return session.run();
}
