// SPDX-License-Identifier: Apache-2.0
/// \file
/// A kernel on the simulator as an executor.

#include "KernelExecutor.h"
#include "KernelText.h"

#include "mega/runtime/Simulator.h"

using namespace llvm;
using namespace mega::run;
using megalith::SimInstance;
using megalith::TensorMap;

namespace {

class SimExecutor : public KernelExecutor<SimInstance> {
public:
  SimExecutor(std::unique_ptr<SimInstance> made, const SimChoices &choices)
      : KernelExecutor(std::move(made)), chosen(choices) {
    megalith::SimOptions options;
    options.seed = chosen.seed;
    for (const auto &[name, policy] : megalith::simPolicies())
      if (name == chosen.policy)
        options.policy = policy;
    instance->setOptions(options);
  }

  std::string name() const override {
    return "simulator (" + std::to_string(instance->grid()) + " CTAs, " +
           chosen.policy + ", seed " + std::to_string(chosen.seed) +
           (chosen.races ? ", races checked)" : ", races not checked)");
  }

private:
  SimChoices chosen;
};

} // namespace

/// The bundle says how many CTAs its kernel runs with at most.
static Error checkSms(int sms, const megalith::Manifest &manifest) {
  if (sms <= manifest.maxCtas)
    return Error::success();
  return createStringError("--sim-sms has value " + std::to_string(sms) +
                           ", expected 1 to " +
                           std::to_string(manifest.maxCtas) +
                           ", the most CTAs of '" + manifest.block + "'");
}

/// From the bundle if there is one, else from the description.
static Expected<std::unique_ptr<SimInstance>>
makeInstance(const Description &description, const SimChoices &choices,
             int64_t rows) {
  megalith::SimCompileOptions compile;
  compile.races = choices.races;
  auto rowsOf = [&](const megalith::Bundle &bundle) {
    return bundle.manifest.hasCaches() ? rows : 0;
  };
  if (auto bundle = description.bundle()) {
    if (Error error = checkSms(choices.ctas, bundle->manifest))
      return error;
    auto made =
        SimInstance::create(bundle, rowsOf(*bundle), choices.ctas, compile);
    if (!made)
      return createStringError(made.status().message());
    return std::move(*made);
  }
  auto source = compileText(description);
  if (!source)
    return source.takeError();
  if (Error error = checkSms(choices.ctas, source->bundle->manifest))
    return error;
  auto kernel = megalith::SimKernel::compile(source->text, compile);
  if (!kernel)
    return createStringError(kernel.status().message());
  auto made = SimInstance::create(source->bundle, *kernel,
                                  rowsOf(*source->bundle), choices.ctas);
  if (!made)
    return createStringError(made.status().message());
  return std::move(*made);
}

Expected<std::unique_ptr<Executor>>
mega::run::makeSimExecutor(const Description &description,
                           const TensorMap &weights, const SimChoices &choices,
                           int64_t rows) {
  auto made = makeInstance(description, choices, rows);
  if (!made)
    return made.takeError();
  auto executor = std::make_unique<SimExecutor>(std::move(*made), choices);
  if (Error error = executor->bind(weights))
    return error;
  return executor;
}
