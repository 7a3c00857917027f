// SPDX-License-Identifier: Apache-2.0
/// \file
/// The kernel under audit.

#include "Subject.h"

#include "File.h"

using namespace mega::audit;
using namespace megalith;

Tensor Subject::step(const Tensor &hidden) {
  Tensor out;
  check(tryStep(hidden, out));
  return out;
}

void Subject::begin(const Start &start) {
  reset();
  for (const auto &[name, value] : start.states.tensors)
    setState(name, value);
  setPosition(start.position);
}

//===----------------------------------------------------------------------===//
// GPU
//===----------------------------------------------------------------------===//

GpuSubject::GpuSubject(std::unique_ptr<Instance> made,
                       std::chrono::milliseconds watchdog)
    : KernelSubject(std::move(made)), watchdog(watchdog) {
  instance->setWatchdog(watchdog);
}

std::string GpuSubject::name() const {
  return fmt::format("{} ({}, {} CTAs)", instance->deviceName(),
                     instance->arch(), instance->grid());
}

std::unique_ptr<Subject> GpuSubject::another(int64_t rows) const {
  return std::make_unique<GpuSubject>(take(instance->share(rows)), watchdog);
}

//===----------------------------------------------------------------------===//
// Simulator
//===----------------------------------------------------------------------===//

SimSubject::SimSubject(std::unique_ptr<SimInstance> made,
                       std::shared_ptr<const Bundle> bundle,
                       std::shared_ptr<SimKernel> kernel,
                       const TensorMap &weights, const SimChoices &choices)
    : KernelSubject(std::move(made)), bundle(std::move(bundle)),
      kernel(std::move(kernel)), weights(weights), choices(choices) {
  check(instance->bindTensors(weights));
  check(instance->weightsReady());
}

std::unique_ptr<SimSubject>
SimSubject::create(std::shared_ptr<const Bundle> bundle,
                   const TensorMap &weights, int64_t rows,
                   const SimChoices &choices) {
  SimCompileOptions compile;
  compile.races = choices.races;
  std::string text = readFile(bundle->directory + "/kernel.cu", 64 << 20);
  auto kernel = take(SimKernel::compile(text, compile));
  auto made = take(SimInstance::create(bundle, kernel, rows, choices.ctas));
  return std::unique_ptr<SimSubject>(new SimSubject(
      std::move(made), std::move(bundle), std::move(kernel), weights, choices));
}

std::string SimSubject::name() const {
  return fmt::format("simulator ({} CTAs{})", instance->grid(),
                     choices.races ? ", races checked" : "");
}

std::unique_ptr<Subject> SimSubject::another(int64_t rows) const {
  auto made = take(SimInstance::create(bundle, kernel, rows, choices.ctas));
  return std::unique_ptr<Subject>(
      new SimSubject(std::move(made), bundle, kernel, weights, choices));
}

void SimSubject::disturb(uint64_t seed) {
  SimOptions options;
  options.seed = seed;
  options.policy = seed == 0 ? SimPolicy::RoundRobin : SimPolicy::Random;
  instance->setOptions(options);
}
