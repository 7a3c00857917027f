// SPDX-License-Identifier: Apache-2.0
/// \file
/// An instance of a kernel as an executor, on whatever it runs.

#ifndef MEGA_TOOLS_RUN_KERNELEXECUTOR_H
#define MEGA_TOOLS_RUN_KERNELEXECUTOR_H

#include "Executor.h"

namespace mega::run {

/// The runtime's status as an error.
inline llvm::Error check(const megalith::Status &status) {
  return status.ok() ? llvm::Error::success()
                     : llvm::createStringError(status.message());
}

/// `InstanceT` is megalith::Instance, or has the same operations.
template <typename InstanceT> class KernelExecutor : public Executor {
public:
  /// The instance gets its weights here.
  llvm::Error bind(const megalith::TensorMap &weights) {
    if (llvm::Error error = check(instance->bindTensors(weights)))
      return error;
    return check(instance->weightsReady());
  }

  llvm::Error begin(const megalith::TensorMap &states,
                    int64_t position) override {
    if (llvm::Error error = check(instance->reset()))
      return error;
    for (const auto &[name, tensor] : states.tensors)
      if (llvm::Error error =
              check(instance->setState(name, tensor.data, tensor.bytes)))
        return error;
    return check(instance->setPosition(position));
  }

  llvm::Expected<megalith::Tensor>
  step(const megalith::Tensor &hidden) override {
    const megalith::TensorDesc &desc = instance->bundle().manifest.output;
    uint8_t *bytes;
    auto out = megalith::Tensor::allocate(desc.dtype, desc.shape, &bytes);
    if (llvm::Error error = check(instance->stepHost(hidden.data, bytes)))
      return error;
    return out;
  }

  llvm::Expected<std::vector<Choice>> choices() override {
    std::vector<Choice> all;
    for (const megalith::ProbeDesc &probe :
         instance->bundle().manifest.probes) {
      if (probe.tensor.dtype != megalith::DType::I32)
        continue;
      Choice choice;
      choice.probe = probe.tensor.name;
      choice.ids.resize(probe.tensor.bytes / sizeof(int32_t));
      if (llvm::Error error = check(instance->readProbe(
              choice.probe, choice.ids.data(), probe.tensor.bytes)))
        return error;
      all.push_back(std::move(choice));
    }
    return all;
  }

  llvm::Expected<megalith::Tensor>
  state(const megalith::StateDesc &desc) override {
    std::vector<int64_t> shape = desc.shape;
    if (desc.isCache())
      shape[0] = instance->position();
    uint8_t *bytes;
    auto value = megalith::Tensor::allocate(desc.dtype, shape, &bytes);
    if (llvm::Error error =
            check(instance->getState(desc.name, bytes, value.bytes)))
      return error;
    return value;
  }

protected:
  explicit KernelExecutor(std::unique_ptr<InstanceT> instance)
      : instance(std::move(instance)) {}

  std::unique_ptr<InstanceT> instance;
};

} // namespace mega::run

#endif // MEGA_TOOLS_RUN_KERNELEXECUTOR_H
