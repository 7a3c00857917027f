// SPDX-License-Identifier: Apache-2.0
//
// What instances may share: a device, a bundle's kernel on it, and its weights.

#ifndef MEGA_RUNTIME_HOST_MODEL_H
#define MEGA_RUNTIME_HOST_MODEL_H

#include "Device.h"
#include "WeightBinder.h"

#include <atomic>
#include <memory>
#include <mutex>

namespace megalith {

/// Safe to use from any number of threads. Throws Error.
class Model {
public:
  Model(std::shared_ptr<const Bundle> bundle, int ordinal);

  /// Gives tensors by the manifest's names; one caller at a time.
  void bind(const std::vector<WeightBinder::NamedTensor> &tensors);
  /// Binds what `map` has; see selectTensors.
  void bind(const TensorMap &map, const std::string &prefix);
  /// Overwrites packed bytes of the arena, which must lie inside it.
  void write(uint64_t offset, const void *data, uint64_t bytes);

  /// Whether all weights are there; constant time, without a lock.
  bool ready() const { return complete.load(std::memory_order_acquire); }
  /// Throws NOT_READY, listing missing tensors, unless ready.
  void expectReady() const;
  std::vector<std::string> missing() const;

  CUdeviceptr weightAddress() const { return weights.address(); }

  const std::shared_ptr<const Bundle> bundle;
  const Manifest &manifest;
  // Destroyed in reverse order: memory before the kernel before the device.
  Device device;
  std::unique_ptr<Kernel> kernel;

private:
  DeviceBuffer weights;
  mutable std::mutex mutex;
  /// Guarded by the mutex.
  WeightBinder binder;
  std::atomic<bool> complete{false};
};

} // namespace megalith

#endif
