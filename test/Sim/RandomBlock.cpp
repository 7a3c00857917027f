// SPDX-License-Identifier: Apache-2.0

#include "RandomBlock.h"

#include "mega/runtime/RandomInit.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>

using namespace megalith;

template <typename T> static T take(Result<T> result) {
  if (!result) {
    std::fprintf(stderr, "%s\n", result.status().message().c_str());
    std::exit(2);
  }
  return std::move(*result);
}

RandomBlock::RandomBlock(std::shared_ptr<const Bundle> shared, uint64_t seed,
                         std::vector<int64_t> newContexts, int steps)
    : bundle(std::move(shared)), contexts(std::move(newContexts)),
      stepsPerContext(steps) {
  const Manifest &manifest = bundle->manifest;
  int64_t rows = *std::max_element(contexts.begin(), contexts.end());
  weights = take(randomWeights(manifest, seed));
  states = take(randomStates(manifest, seed, rows));
  for (size_t i = 0; i < contexts.size() * stepsPerContext; ++i)
    tokens.push_back(
        take(randomToken(seed, "token" + std::to_string(i),
                         manifest.input.dtype, manifest.input.shape)));
}

History RandomBlock::run(std::shared_ptr<SimKernel> kernel, int ctas,
                         const SimOptions &options) const {
  History history;
  const Manifest &manifest = bundle->manifest;
  int64_t rows = *std::max_element(contexts.begin(), contexts.end());
  auto made = SimInstance::create(bundle, kernel, rows + stepsPerContext, ctas);
  if (!made) {
    history.status = made.status();
    return history;
  }
  SimInstance &instance = **made;
  auto succeed = [&](Status status) {
    if (history.status.ok() && !status.ok()) {
      history.status = status;
      history.reports = instance.lastRun().reports;
    }
    return history.status.ok();
  };
  succeed(instance.bindTensors(weights));
  for (const auto &[name, tensor] : states.tensors)
    succeed(instance.setState(name, tensor.data, tensor.bytes));
  instance.setOptions(options);
  size_t token = 0;
  for (int64_t context : contexts) {
    succeed(instance.setPosition(context));
    for (int step = 0; step < stepsPerContext; ++step) {
      std::vector<uint8_t> output(manifest.output.bytes);
      if (!succeed(instance.stepHost(tokens[token++].data, output.data())))
        return history;
      history.values.push_back(std::move(output));
    }
  }
  for (const StateDesc &desc : manifest.states) {
    std::vector<uint8_t> state(
        desc.isCache() ? desc.unitBytes * uint64_t(instance.position())
                       : desc.unitBytes);
    if (!succeed(instance.getState(desc.name, state.data(), state.size())))
      return history;
    history.values.push_back(std::move(state));
  }
  return history;
}
