// SPDX-License-Identifier: Apache-2.0
/// \file
/// A bundle's kernel on a GPU as an executor.

#include "DeviceClock.h"
#include "KernelExecutor.h"

#include "mega/runtime/Instance.h"

using namespace llvm;
using namespace mega::run;
using megalith::Tensor;
using megalith::TensorMap;

/// No step of a block takes as long; one that does hangs, and then the error
/// says where.
static constexpr std::chrono::seconds watchdog{20};

namespace {

class CudaExecutor : public KernelExecutor<megalith::Instance> {
public:
  CudaExecutor(std::unique_ptr<megalith::Instance> instance, int device)
      : KernelExecutor(std::move(instance)), device(device) {}

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
  (*made)->setWatchdog(watchdog);
  auto executor = std::make_unique<CudaExecutor>(std::move(*made), device);
  if (Error error = executor->bind(weights))
    return error;
  return executor;
}
