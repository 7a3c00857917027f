// SPDX-License-Identifier: Apache-2.0

#include "mega/runtime/Instance.h"

#include "Device.h"
#include "Error.h"
#include "WeightBinder.h"
#include "mega/runtime/Safetensors.h"

#include "mega/abi/Kernel.h"

#include <algorithm>

using namespace megalith;

namespace {

constexpr uint64_t addressAlignment = 16;

/// A state's memory.
struct StateSlot {
  const StateDesc *desc;
  /// 0 while a cache has no memory.
  CUdeviceptr address;
  /// Bytes at `address`; a whole number of rows for a cache.
  uint64_t bytes;
  /// Empty if the caller owns the memory.
  DeviceBuffer owned;
};

/// The kernel's one parameter: the header, then the states' addresses.
class KernelParameter {
public:
  explicit KernelParameter(size_t states)
      : words((sizeof(mega_kernel_header) + states * sizeof(CUdeviceptr)) /
              sizeof(uint64_t)) {}

  mega_kernel_header &header() {
    return *reinterpret_cast<mega_kernel_header *>(words.data());
  }
  void setState(size_t index, CUdeviceptr address) {
    words[sizeof(mega_kernel_header) / sizeof(uint64_t) + index] = address;
  }
  void *data() { return words.data(); }

private:
  static_assert(sizeof(mega_kernel_header) % sizeof(uint64_t) == 0);
  std::vector<uint64_t> words;
};

} // namespace

struct Instance::Impl {
  Impl(std::shared_ptr<const Bundle> shared, int ordinal, int64_t capacityRows);
  ~Impl();

  /// The slot of a state; NOT_FOUND.
  StateSlot &slot(const std::string &name);
  /// Throws unless a copy of `bytes` bytes from or to the slot is allowed.
  void expectCopy(const StateSlot &slot, const void *data, uint64_t bytes);
  /// Rows every cache can hold.
  int64_t smallestCache() const;
  /// Gives tensors by the manifest's names.
  void bind(const std::vector<WeightBinder::NamedTensor> &tensors);
  /// The launch, with the context current.
  void launch(uint64_t input, uint64_t output, void *stream);
  /// Waits until nothing of the context touches device memory.
  void synchronize() {
    device.check(device.driver.cuCtxSynchronize(), "cuCtxSynchronize");
  }

  std::shared_ptr<const Bundle> bundle;
  const Manifest &manifest;
  // Destroyed in reverse order: memory before the kernel before the device.
  Device device;
  std::unique_ptr<Kernel> kernel;
  WeightBinder binder;
  DeviceBuffer weights;
  DeviceBuffer workspace;
  DeviceBuffer hostInput;
  DeviceBuffer hostOutput;
  std::vector<StateSlot> states;
  KernelParameter parameter;
  /// Bound on the position that the caller gave; 0 is none.
  int64_t requestedRows;
  int64_t capacity = 0;
  int64_t position = 0;
};

Instance::Impl::Impl(std::shared_ptr<const Bundle> shared, int ordinal,
                     int64_t capacityRows)
    : bundle(std::move(shared)), manifest(bundle->manifest), device(ordinal),
      binder(manifest), parameter(manifest.states.size()),
      requestedRows(capacityRows) {
  CurrentContext current(device);
  kernel = std::make_unique<Kernel>(device, *bundle);
  weights = DeviceBuffer(device, manifest.weightBytes, "weights");
  workspace = DeviceBuffer(device, manifest.workspaceBytes, "the workspace");
  hostInput = DeviceBuffer(device, manifest.input.bytes, "the input");
  hostOutput = DeviceBuffer(device, manifest.output.bytes, "the output");
  for (const StateDesc &desc : manifest.states) {
    StateSlot slot{&desc, 0, desc.unitBytes, {}};
    if (desc.isCache() &&
        __builtin_mul_overflow(desc.unitBytes, uint64_t(capacityRows),
                               &slot.bytes))
      fail(MEGALITH_RESOURCE_LIMIT,
           "cache {}: {} rows of {} bytes are too many", quote(desc.name),
           capacityRows, desc.unitBytes);
    if (slot.bytes != 0) {
      slot.owned =
          DeviceBuffer(device, slot.bytes, "state " + quote(desc.name));
      slot.address = slot.owned.address();
    }
    parameter.setState(states.size(), slot.address);
    states.push_back(std::move(slot));
  }
  capacity = smallestCache();
  parameter.header().weights =
      reinterpret_cast<const uint8_t *>(weights.address());
  parameter.header().workspace =
      reinterpret_cast<uint8_t *>(workspace.address());
  // The zeroing above is asynchronous, and steps may use any stream.
  synchronize();
}

Instance::Impl::~Impl() {
  // Kernels in flight must not outlive what they use.
  CUcontext popped;
  device.driver.cuCtxPushCurrent(device.context);
  device.driver.cuCtxSynchronize();
  device.driver.cuCtxPopCurrent(&popped);
}

StateSlot &Instance::Impl::slot(const std::string &name) {
  std::optional<size_t> index = manifest.findState(name);
  if (!index)
    fail(MEGALITH_NOT_FOUND, "block {} has no state {}", quote(manifest.block),
         quote(name));
  return states[*index];
}

void Instance::Impl::expectCopy(const StateSlot &slot, const void *data,
                                uint64_t bytes) {
  const StateDesc &desc = *slot.desc;
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
  if (slot.address == 0)
    fail(MEGALITH_NOT_READY, "cache {} has no memory yet", quote(desc.name));
  if (bytes > slot.bytes)
    fail(MEGALITH_CAPACITY, "cache {}: {} rows are above its capacity of {}",
         quote(desc.name), bytes / desc.unitBytes, slot.bytes / desc.unitBytes);
}

int64_t Instance::Impl::smallestCache() const {
  int64_t rows = INT64_MAX;
  for (const StateSlot &slot : states)
    if (slot.desc->isCache())
      rows = std::min(rows, int64_t(slot.bytes / slot.desc->unitBytes));
  if (!manifest.hasCaches() && requestedRows > 0)
    rows = requestedRows;
  return rows;
}

void Instance::Impl::bind(
    const std::vector<WeightBinder::NamedTensor> &tensors) {
  CurrentContext current(device);
  binder.bind(
      tensors, [&](uint64_t offset, const uint8_t *data, uint64_t bytes) {
        device.check(
            device.driver.cuMemcpyHtoD(weights.address() + offset, data, bytes),
            "cuMemcpyHtoD of weights");
        // The copy may still be on its way, and it must have arrived
        // (or failed) before the region counts as uploaded.
        synchronize();
      });
}

void Instance::Impl::launch(uint64_t input, uint64_t output, void *stream) {
  if (!binder.ready())
    binder.expectReady();
  if (input == 0 || input % addressAlignment != 0)
    fail(MEGALITH_INVALID_ARGUMENT,
         "input address {:#x} is null or not a multiple of {}", input,
         addressAlignment);
  if (output == 0 || output % addressAlignment != 0)
    fail(MEGALITH_INVALID_ARGUMENT,
         "output address {:#x} is null or not a multiple of {}", output,
         addressAlignment);
  if (output < input + manifest.input.bytes &&
      input < output + manifest.output.bytes &&
      !(manifest.inPlace && input == output))
    fail(MEGALITH_INVALID_ARGUMENT,
         "output address {:#x} overlaps the input at {:#x}, expected {}",
         output, input,
         manifest.inPlace
             ? "the same address or none of its bytes"
             : "none of its bytes: block " + quote(manifest.block) +
                   " reads its input to the end");
  // Kernels count rows in 32 bits.
  if (position >= INT32_MAX - 1)
    fail(MEGALITH_CAPACITY, "position {} is too large, expected below {}",
         position, INT32_MAX - 1);
  if (position >= capacity) {
    for (const StateSlot &slot : states)
      if (slot.address == 0)
        fail(MEGALITH_NOT_READY, "cache {} has no memory yet",
             quote(slot.desc->name));
    fail(MEGALITH_CAPACITY, "position {} is at the cache capacity of {} rows",
         position, capacity);
  }
  mega_kernel_header &header = parameter.header();
  header.input = reinterpret_cast<const void *>(input);
  header.output = reinterpret_cast<void *>(output);
  header.position = position;
  void *parameters[] = {parameter.data()};
  device.check(device.driver.cuLaunchCooperativeKernel(
                   kernel->function, unsigned(kernel->grid), 1, 1,
                   unsigned(manifest.threads), 1, 1,
                   unsigned(manifest.sharedBytes),
                   static_cast<CUstream>(stream), parameters),
               "cuLaunchCooperativeKernel");
  ++position;
}

Instance::Instance(std::unique_ptr<Impl> impl) : impl(std::move(impl)) {}
Instance::~Instance() = default;

Result<std::unique_ptr<Instance>>
Instance::create(std::shared_ptr<const Bundle> bundle, int device,
                 int64_t capacityRows) {
  return guardResult<std::unique_ptr<Instance>>([&] {
    if (capacityRows < 0)
      fail(MEGALITH_INVALID_ARGUMENT,
           "cache capacity is {} rows, expected 0 or more", capacityRows);
    return std::unique_ptr<Instance>(new Instance(
        std::make_unique<Impl>(std::move(bundle), device, capacityRows)));
  });
}

const Bundle &Instance::bundle() const { return *impl->bundle; }
int Instance::grid() const { return impl->kernel->grid; }
const std::string &Instance::deviceName() const { return impl->device.name; }
const std::string &Instance::arch() const { return impl->kernel->target->arch; }

Status Instance::bindTensor(const std::string &name, const Tensor &tensor) {
  return guard([&] { impl->bind({{name, tensor}}); });
}

Status Instance::bindTensors(const TensorMap &map, const std::string &prefix) {
  return guard([&] {
    std::vector<WeightBinder::NamedTensor> tensors;
    for (const auto &[name, tensor] : map.tensors)
      if (name.compare(0, prefix.size(), prefix) == 0 &&
          impl->binder.wants(name.substr(prefix.size())))
        tensors.emplace_back(name.substr(prefix.size()), tensor);
    if (tensors.empty())
      fail(MEGALITH_NOT_FOUND,
           "none of the {} tensors given, with prefix {}, is a weight of "
           "block {}",
           map.tensors.size(), quote(prefix), quote(impl->manifest.block));
    impl->bind(tensors);
  });
}

Status Instance::bindSafetensors(const std::string &path,
                                 const std::string &prefix) {
  return guard([&] {
    TensorMap map = take(readSafetensors(path));
    Status status = bindTensors(map, prefix);
    if (!status.ok())
      fail(status.code(), "{}: {}", path, status.message());
  });
}

std::vector<std::string> Instance::missingTensors() const {
  return impl->binder.missing();
}

Status Instance::weightsReady() const {
  return guard([&] { impl->binder.expectReady(); });
}

Status Instance::setState(const std::string &name, const void *data,
                          uint64_t bytes) {
  return guard([&] {
    StateSlot &slot = impl->slot(name);
    impl->expectCopy(slot, data, bytes);
    if (bytes == 0)
      return;
    CurrentContext current(impl->device);
    impl->synchronize();
    impl->device.check(
        impl->device.driver.cuMemcpyHtoD(slot.address, data, bytes),
        "cuMemcpyHtoD of a state");
    impl->synchronize();
  });
}

Status Instance::getState(const std::string &name, void *data, uint64_t bytes) {
  return guard([&] {
    StateSlot &slot = impl->slot(name);
    impl->expectCopy(slot, data, bytes);
    if (bytes == 0)
      return;
    CurrentContext current(impl->device);
    impl->synchronize();
    impl->device.check(
        impl->device.driver.cuMemcpyDtoH(data, slot.address, bytes),
        "cuMemcpyDtoH of a state");
  });
}

Status Instance::bindState(const std::string &name, uint64_t address,
                           uint64_t bytes) {
  return guard([&] {
    StateSlot &slot = impl->slot(name);
    const StateDesc &desc = *slot.desc;
    if (address == 0 || address % addressAlignment != 0)
      fail(MEGALITH_INVALID_ARGUMENT,
           "state {}: address {:#x} is null or not a multiple of {}",
           quote(name), address, addressAlignment);
    uint64_t usable = desc.unitBytes;
    if (desc.isCache())
      usable = bytes / desc.unitBytes * desc.unitBytes;
    if (bytes < desc.unitBytes)
      fail(MEGALITH_INVALID_ARGUMENT,
           "state {}: size is {} bytes, expected at least {}", quote(name),
           bytes, desc.unitBytes);
    if (desc.isCache() && int64_t(usable / desc.unitBytes) < impl->position)
      fail(MEGALITH_CAPACITY,
           "cache {}: {} rows are fewer than the position, {}", quote(name),
           usable / desc.unitBytes, impl->position);
    if (slot.owned.address() != 0) {
      // Steps in flight may still use what is freed.
      CurrentContext current(impl->device);
      impl->synchronize();
      slot.owned.release();
    }
    slot.address = address;
    slot.bytes = usable;
    impl->parameter.setState(size_t(&slot - impl->states.data()), address);
    impl->capacity = impl->smallestCache();
  });
}

Result<uint64_t> Instance::stateAddress(const std::string &name) const {
  return guardResult<uint64_t>(
      [&] { return uint64_t(impl->slot(name).address); });
}

int64_t Instance::capacity() const { return impl->capacity; }

Status Instance::setPosition(int64_t position) {
  return guard([&] {
    if (position < 0)
      fail(MEGALITH_INVALID_ARGUMENT, "position is {}, expected 0 or more",
           position);
    if (position > impl->capacity)
      fail(MEGALITH_CAPACITY,
           "position {} is above the cache capacity of {} rows", position,
           impl->capacity);
    impl->position = position;
  });
}

int64_t Instance::position() const { return impl->position; }

Status Instance::step(uint64_t input, uint64_t output, void *stream) {
  return guard([&] {
    CurrentContext current(impl->device);
    impl->launch(input, output, stream);
  });
}

Status Instance::stepHost(const void *input, void *output) {
  return guard([&] {
    if (!input || !output)
      fail(MEGALITH_INVALID_ARGUMENT, "input or output is null");
    const Driver &driver = impl->device.driver;
    CurrentContext current(impl->device);
    int64_t before = impl->position;
    try {
      impl->device.check(driver.cuMemcpyHtoD(impl->hostInput.address(), input,
                                             impl->manifest.input.bytes),
                         "cuMemcpyHtoD of the input");
      impl->launch(impl->hostInput.address(), impl->hostOutput.address(),
                   nullptr);
      impl->synchronize();
      impl->device.check(driver.cuMemcpyDtoH(output, impl->hostOutput.address(),
                                             impl->manifest.output.bytes),
                         "cuMemcpyDtoH of the output");
    } catch (...) {
      impl->position = before;
      throw;
    }
  });
}

Status Instance::readProbe(const std::string &name, void *data,
                           uint64_t bytes) {
  return guard([&] {
    const std::vector<ProbeDesc> &probes = impl->manifest.probes;
    auto probe =
        std::find_if(probes.begin(), probes.end(), [&](const ProbeDesc &desc) {
          return desc.tensor.name == name;
        });
    if (probe == probes.end())
      fail(MEGALITH_NOT_FOUND, "block {} has no probe {}",
           quote(impl->manifest.block), quote(name));
    if (!data || bytes != probe->tensor.bytes)
      fail(MEGALITH_INVALID_ARGUMENT,
           "probe {}: size is {} bytes at {}, expected {}", quote(name), bytes,
           data ? "an address" : "null", probe->tensor.bytes);
    CurrentContext current(impl->device);
    impl->synchronize();
    impl->device.check(
        impl->device.driver.cuMemcpyDtoH(
            data, impl->workspace.address() + probe->offset, bytes),
        "cuMemcpyDtoH of a probe");
  });
}

Status Instance::reset() {
  return guard([&] {
    const Driver &driver = impl->device.driver;
    CurrentContext current(impl->device);
    impl->synchronize();
    for (const StateSlot &slot : impl->states)
      if (slot.address != 0)
        impl->device.check(driver.cuMemsetD8(slot.address, 0, slot.bytes),
                           "cuMemsetD8 of a state");
    if (impl->manifest.workspaceBytes != 0)
      impl->device.check(driver.cuMemsetD8(impl->workspace.address(), 0,
                                           impl->manifest.workspaceBytes),
                         "cuMemsetD8 of the workspace");
    impl->synchronize();
    impl->position = 0;
  });
}
