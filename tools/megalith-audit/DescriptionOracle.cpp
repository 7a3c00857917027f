// SPDX-License-Identifier: Apache-2.0
/// \file
/// The reference interpreter as an audit's oracle.

#include "DescriptionOracle.h"

using namespace mega;
using namespace mega::audit;

/// An LLVM error as the exception that audits throw.
[[noreturn]] static void raise(llvm::Error error) {
  megalith::fail(MEGALITH_INTERNAL, "reference: {}",
                 llvm::toString(std::move(error)));
}

namespace {

class DescriptionOracle : public Oracle {
public:
  explicit DescriptionOracle(std::unique_ptr<run::Executor> executor)
      : executor(std::move(executor)) {}

  void begin(const Start &start) override {
    if (llvm::Error error = executor->begin(start.states, start.position))
      raise(std::move(error));
  }

  Tensor step(const Tensor &hidden) override {
    auto out = executor->step(hidden);
    if (!out)
      raise(out.takeError());
    return *out;
  }

  std::vector<Choice> choices() override {
    auto chosen = executor->choices();
    if (!chosen)
      raise(chosen.takeError());
    std::vector<Choice> all;
    for (const run::Choice &choice : *chosen)
      all.push_back({choice.probe, choice.ids, choice.gap});
    return all;
  }

private:
  std::unique_ptr<run::Executor> executor;
};

} // namespace

llvm::Expected<std::unique_ptr<Oracle>>
mega::audit::makeOracle(const run::Description &description,
                        const TensorMap &weights, unsigned threads) {
  auto executor = run::makeReferenceExecutor(description, weights, threads,
                                             /*relaxed=*/true);
  if (!executor)
    return executor.takeError();
  return std::make_unique<DescriptionOracle>(std::move(*executor));
}
