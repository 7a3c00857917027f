// SPDX-License-Identifier: Apache-2.0
/// \file
/// A bundle's kernel on a GPU as an executor.

#include "DeviceClock.h"
#include "Executor.h"

#include "mega/runtime/Instance.h"

using namespace llvm;
using namespace mega::run;
using megalith::Status;
using megalith::Tensor;
using megalith::TensorMap;

/// The runtime's status as an error.
static Error check(const Status &status) {
  return status.ok() ? Error::success() : createStringError(status.message());
}

namespace {

class CudaExecutor : public Executor {
public:
  CudaExecutor(std::unique_ptr<megalith::Instance> instance, int device)
      : instance(std::move(instance)), device(device) {}

  Error begin(const TensorMap &states, int64_t position) override {
    if (Error error = check(instance->reset()))
      return error;
    for (const auto &[name, tensor] : states.tensors)
      if (Error error =
              check(instance->setState(name, tensor.data, tensor.bytes)))
        return error;
    return check(instance->setPosition(position));
  }

  Expected<Tensor> step(const Tensor &hidden) override {
    const megalith::TensorDesc &desc = instance->bundle().manifest.output;
    uint8_t *bytes;
    Tensor out = Tensor::allocate(desc.dtype, desc.shape, &bytes);
    if (Error error = check(instance->stepHost(hidden.data, bytes)))
      return error;
    return out;
  }

  Expected<std::vector<Choice>> choices() override {
    std::vector<Choice> all;
    for (const megalith::ProbeDesc &probe :
         instance->bundle().manifest.probes) {
      if (probe.tensor.dtype != megalith::DType::I32)
        continue;
      Choice choice;
      choice.probe = probe.tensor.name;
      choice.ids.resize(probe.tensor.bytes / sizeof(int32_t));
      if (Error error = check(instance->readProbe(
              choice.probe, choice.ids.data(), probe.tensor.bytes)))
        return error;
      all.push_back(std::move(choice));
    }
    return all;
  }

  Expected<Tensor> state(const megalith::StateDesc &desc) override {
    std::vector<int64_t> shape = desc.shape;
    if (desc.isCache())
      shape[0] = instance->position();
    uint8_t *bytes;
    Tensor value = Tensor::allocate(desc.dtype, shape, &bytes);
    if (Error error = check(instance->getState(desc.name, bytes, value.bytes)))
      return error;
    return value;
  }

  Expected<StepTime> timeSteps(const Tensor &hidden, int64_t count) override {
    auto clock = DeviceClock::create(device);
    if (!clock)
      return clock.takeError();
    auto input = (*clock)->upload(hidden.data, hidden.bytes);
    if (!input)
      return input.takeError();
    uint64_t bytes = instance->bundle().manifest.output.bytes;
    std::vector<uint8_t> zeros(bytes);
    auto output = (*clock)->upload(zeros.data(), bytes);
    if (!output)
      return output.takeError();
    return (*clock)->time(
        count, [&] { return check(instance->step(*input, *output, nullptr)); });
  }

  std::string name() const override {
    return instance->deviceName() + " (" + instance->arch() + ", " +
           std::to_string(instance->grid()) + " CTAs)";
  }

private:
  std::unique_ptr<megalith::Instance> instance;
  int device;
};

} // namespace

Expected<std::unique_ptr<Executor>>
mega::run::makeCudaExecutor(const Description &description,
                            const TensorMap &weights, int device,
                            int64_t rows) {
  auto bundle = description.bundle();
  auto made = megalith::Instance::create(
      bundle, device, bundle->manifest.hasCaches() ? rows : 0);
  if (!made)
    return createStringError(made.status().message());
  if (Error error = check((*made)->bindTensors(weights)))
    return error;
  if (Error error = check((*made)->weightsReady()))
    return error;
  return std::make_unique<CudaExecutor>(std::move(*made), device);
}
