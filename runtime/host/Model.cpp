// SPDX-License-Identifier: Apache-2.0

#include "Model.h"

#include "Error.h"
#include "InstanceChecks.h"

using namespace megalith;

Model::Model(std::shared_ptr<const Bundle> shared, int ordinal)
    : bundle(std::move(shared)), manifest(bundle->manifest), device(ordinal),
      binder(manifest) {
  CurrentContext current(device);
  kernel = std::make_unique<Kernel>(device, *bundle);
  weights = DeviceBuffer(device, manifest.weightBytes, "weights");
  complete = binder.ready();
}

void Model::bind(const std::vector<WeightBinder::NamedTensor> &tensors) {
  std::lock_guard<std::mutex> lock(mutex);
  CurrentContext current(device);
  binder.bind(
      tensors, [&](uint64_t offset, const uint8_t *data, uint64_t bytes) {
        device.check(
            device.driver.cuMemcpyHtoD(weights.address() + offset, data, bytes),
            "cuMemcpyHtoD of weights");
        // The copy may still be on its way, and it must have arrived
        // (or failed) before the region counts as uploaded.
        device.check(device.driver.cuCtxSynchronize(), "cuCtxSynchronize");
      });
  complete.store(binder.ready(), std::memory_order_release);
}

void Model::bind(const TensorMap &map, const std::string &prefix) {
  // Names are the manifest's, so choosing needs no lock.
  bind(selectTensors(manifest, binder, map, prefix));
}

void Model::write(uint64_t offset, const void *data, uint64_t bytes) {
  if (offset > manifest.weightBytes || bytes > manifest.weightBytes - offset)
    fail(MEGALITH_INVALID_ARGUMENT,
         "weight bytes {}..{} are not inside the arena of {}", offset,
         offset + bytes, manifest.weightBytes);
  if (bytes == 0)
    return;
  if (!data)
    fail(MEGALITH_INVALID_ARGUMENT, "weight bytes are at null");
  std::lock_guard<std::mutex> lock(mutex);
  CurrentContext current(device);
  device.check(device.driver.cuCtxSynchronize(), "cuCtxSynchronize");
  device.check(
      device.driver.cuMemcpyHtoD(weights.address() + offset, data, bytes),
      "cuMemcpyHtoD of weights");
  device.check(device.driver.cuCtxSynchronize(), "cuCtxSynchronize");
}

void Model::expectReady() const {
  if (ready())
    return;
  std::lock_guard<std::mutex> lock(mutex);
  binder.expectReady();
}

std::vector<std::string> Model::missing() const {
  std::lock_guard<std::mutex> lock(mutex);
  return binder.missing();
}
