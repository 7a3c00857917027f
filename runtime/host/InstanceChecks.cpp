// SPDX-License-Identifier: Apache-2.0

#include "InstanceChecks.h"

#include "Error.h"

#include <algorithm>

using namespace megalith;

size_t megalith::findState(const Manifest &manifest, const std::string &name) {
  std::optional<size_t> index = manifest.findState(name);
  if (!index)
    fail(MEGALITH_NOT_FOUND, "block {} has no state {}", quote(manifest.block),
         quote(name));
  return *index;
}

const ProbeDesc &megalith::findProbe(const Manifest &manifest,
                                     const std::string &name, const void *data,
                                     uint64_t bytes) {
  const std::vector<ProbeDesc> &probes = manifest.probes;
  auto probe =
      std::find_if(probes.begin(), probes.end(), [&](const ProbeDesc &desc) {
        return desc.tensor.name == name;
      });
  if (probe == probes.end())
    fail(MEGALITH_NOT_FOUND, "block {} has no probe {}", quote(manifest.block),
         quote(name));
  if (!data || bytes != probe->tensor.bytes)
    fail(MEGALITH_INVALID_ARGUMENT,
         "probe {}: size is {} bytes at {}, expected {}", quote(name), bytes,
         data ? "an address" : "null", probe->tensor.bytes);
  return *probe;
}

void megalith::expectStateCopy(const StateDesc &desc, uint64_t allocated,
                               const void *data, uint64_t bytes) {
  if (!data && bytes != 0)
    fail(MEGALITH_INVALID_ARGUMENT, "state {}: host pointer is null",
         quote(desc.name));
  if (!desc.isCache()) {
    if (bytes != desc.unitBytes)
      fail(MEGALITH_INVALID_ARGUMENT, "state {}: size is {} bytes, expected {}",
           quote(desc.name), bytes, desc.unitBytes);
    return;
  }
  if (bytes % desc.unitBytes != 0)
    fail(MEGALITH_INVALID_ARGUMENT,
         "cache {}: {} bytes are no whole number of rows of {} bytes",
         quote(desc.name), bytes, desc.unitBytes);
  if (allocated == 0)
    fail(MEGALITH_NOT_READY, "cache {} has no memory yet", quote(desc.name));
  if (bytes > allocated)
    fail(MEGALITH_CAPACITY, "cache {}: {} rows are above its capacity of {}",
         quote(desc.name), bytes / desc.unitBytes, allocated / desc.unitBytes);
}

void megalith::expectStateMemory(const StateDesc &desc, uint64_t address,
                                 uint64_t bytes, int64_t position) {
  if (address == 0 || address % addressAlignment != 0)
    fail(MEGALITH_INVALID_ARGUMENT,
         "state {}: address {:#x} is null or not a multiple of {}",
         quote(desc.name), address, addressAlignment);
  if (bytes < desc.unitBytes)
    fail(MEGALITH_INVALID_ARGUMENT,
         "state {}: size is {} bytes, expected at least {}", quote(desc.name),
         bytes, desc.unitBytes);
  if (desc.isCache() && bytes / desc.unitBytes < uint64_t(position))
    fail(MEGALITH_CAPACITY, "cache {}: {} rows are fewer than the position, {}",
         quote(desc.name), bytes / desc.unitBytes, position);
}

void megalith::expectPosition(int64_t position, int64_t capacity) {
  if (position < 0)
    fail(MEGALITH_INVALID_ARGUMENT, "position is {}, expected 0 or more",
         position);
  if (position > capacity)
    fail(MEGALITH_CAPACITY,
         "position {} is above the cache capacity of {} rows", position,
         capacity);
}

void megalith::expectRoom(int64_t position, int64_t capacity) {
  // Kernels count rows in 32 bits.
  if (position >= INT32_MAX - 1)
    fail(MEGALITH_CAPACITY, "position {} is too large, expected below {}",
         position, INT32_MAX - 1);
  if (position >= capacity)
    fail(MEGALITH_CAPACITY, "position {} is at the cache capacity of {} rows",
         position, capacity);
}

std::vector<WeightBinder::NamedTensor>
megalith::selectTensors(const Manifest &manifest, const WeightBinder &binder,
                        const TensorMap &map, const std::string &prefix) {
  std::vector<WeightBinder::NamedTensor> tensors;
  for (const auto &[name, tensor] : map.tensors)
    if (name.compare(0, prefix.size(), prefix) == 0 &&
        binder.wants(name.substr(prefix.size())))
      tensors.emplace_back(name.substr(prefix.size()), tensor);
  if (tensors.empty())
    fail(MEGALITH_NOT_FOUND,
         "none of the {} tensors given, with prefix {}, is a weight of "
         "block {}",
         map.tensors.size(), quote(prefix), quote(manifest.block));
  return tensors;
}
