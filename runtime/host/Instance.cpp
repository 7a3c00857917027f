// SPDX-License-Identifier: Apache-2.0

#include "mega/runtime/Instance.h"

#include "Error.h"
#include "HangReport.h"
#include "InstanceChecks.h"
#include "Model.h"
#include "mega/runtime/Safetensors.h"

#include "mega/abi/Kernel.h"

#include <algorithm>
#include <optional>
#include <thread>

using namespace megalith;

namespace {

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
  Impl(std::shared_ptr<Model> shared, int64_t capacityRows);
  ~Impl();

  /// The slot of a state; NOT_FOUND.
  StateSlot &slot(const std::string &name) {
    return states[findState(manifest, name)];
  }
  /// Rows every cache can hold.
  int64_t smallestCache() const;
  /// Makes the caller's memory, which was checked, a state's. What the slot
  /// owned is freed: steps in flight must be done.
  void adopt(StateSlot &slot, CUdeviceptr address, uint64_t bytes);
  /// The launch, with the context current.
  void launch(uint64_t input, uint64_t output, void *stream);
  /// Waits until nothing of the context touches device memory. TIMEOUT if the
  /// watchdog's time runs out.
  void synchronize();
  /// Where a launch that does not end is, as text. Bounded in time.
  std::string whereItHangs();

  std::shared_ptr<Model> model;
  const Manifest &manifest;
  const Device &device;
  DeviceBuffer workspace;
  DeviceBuffer hostInput;
  DeviceBuffer hostOutput;
  std::vector<StateSlot> states;
  KernelParameter parameter;
  /// Bound on the position that the caller gave; 0 is none.
  int64_t requestedRows;
  int64_t capacity = 0;
  int64_t position = 0;
  /// How long anything may wait for the device; 0 is without end.
  std::chrono::milliseconds watchdog{0};
};

Instance::Impl::Impl(std::shared_ptr<Model> shared, int64_t capacityRows)
    : model(std::move(shared)), manifest(model->manifest),
      device(model->device), parameter(manifest.states.size()),
      requestedRows(capacityRows) {
  CurrentContext current(device);
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
      reinterpret_cast<const uint8_t *>(model->weightAddress());
  parameter.header().workspace =
      reinterpret_cast<uint8_t *>(workspace.address());
  // The zeroing above is asynchronous, and steps may use any stream.
  synchronize();
}

Instance::Impl::~Impl() {
  // Kernels in flight must not outlive what they use.
  bool idle = false;
  try {
    CurrentContext current(device);
    idle = device.waitIdle(watchdog);
  } catch (...) {
    // The context is broken, so nothing of it runs.
    idle = true;
  }
  if (idle)
    return;
  // Freeing memory would wait for the kernel that does not end. What it uses
  // stays until the process ends.
  for (DeviceBuffer *buffer : {&workspace, &hostInput, &hostOutput})
    buffer->abandon();
  for (StateSlot &slot : states)
    slot.owned.abandon();
  try {
    new std::shared_ptr<Model>(model);
  } catch (...) {
    std::terminate(); // no memory for 16 bytes, and a kernel that writes on
  }
}

void Instance::Impl::synchronize() {
  if (!device.waitIdle(watchdog))
    fail(MEGALITH_TIMEOUT, "device {} is not done after {} ms, position {}: {}",
         device.name, watchdog.count(), position, whereItHangs());
}

std::string Instance::Impl::whereItHangs() {
  constexpr std::chrono::seconds patience{2};
  const Driver &driver = device.driver;
  // Owned by nobody if the copy does not end either.
  auto bytes = std::make_unique<std::vector<uint8_t>>(manifest.workspaceBytes);
  CUstream side = nullptr;
  if (driver.cuStreamCreate(&side, CU_STREAM_NON_BLOCKING) != CUDA_SUCCESS)
    return "the workspace cannot be read";
  CUresult result = CUDA_SUCCESS;
  if (!bytes->empty()) {
    result = driver.cuMemcpyDtoHAsync(bytes->data(), workspace.address(),
                                      bytes->size(), side);
    auto end = std::chrono::steady_clock::now() + patience;
    while (result == CUDA_SUCCESS &&
           (result = driver.cuStreamQuery(side)) == CUDA_ERROR_NOT_READY &&
           std::chrono::steady_clock::now() < end) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
      result = CUDA_SUCCESS;
    }
  }
  if (result != CUDA_SUCCESS) {
    bytes.release();
    return "the workspace cannot be read";
  }
  driver.cuStreamDestroy(side);
  return describeHang(manifest, model->kernel->grid, *bytes);
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

void Instance::Impl::adopt(StateSlot &slot, CUdeviceptr address,
                           uint64_t bytes) {
  slot.owned.release();
  slot.address = address;
  uint64_t unit = slot.desc->unitBytes;
  slot.bytes = slot.desc->isCache() ? bytes / unit * unit : unit;
  parameter.setState(size_t(&slot - states.data()), address);
}

void Instance::Impl::launch(uint64_t input, uint64_t output, void *stream) {
  if (!model->ready())
    model->expectReady();
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
  if (position >= capacity)
    for (const StateSlot &slot : states)
      if (slot.address == 0)
        fail(MEGALITH_NOT_READY, "cache {} has no memory yet",
             quote(slot.desc->name));
  expectRoom(position, capacity);
  mega_kernel_header &header = parameter.header();
  header.input = reinterpret_cast<const void *>(input);
  header.output = reinterpret_cast<void *>(output);
  header.position = position;
  void *parameters[] = {parameter.data()};
  device.check(device.driver.cuLaunchCooperativeKernel(
                   model->kernel->function, unsigned(model->kernel->grid), 1, 1,
                   unsigned(manifest.threads), 1, 1,
                   unsigned(manifest.sharedBytes),
                   static_cast<CUstream>(stream), parameters),
               "cuLaunchCooperativeKernel");
  ++position;
}

Instance::Instance(std::unique_ptr<Impl> impl) : impl(std::move(impl)) {}
Instance::~Instance() = default;

/// Throws unless a number of rows makes sense.
static void expectRows(int64_t capacityRows) {
  if (capacityRows < 0)
    fail(MEGALITH_INVALID_ARGUMENT,
         "cache capacity is {} rows, expected 0 or more", capacityRows);
}

Result<std::unique_ptr<Instance>>
Instance::create(std::shared_ptr<const Bundle> bundle, int device,
                 int64_t capacityRows) {
  return guardResult<std::unique_ptr<Instance>>([&] {
    expectRows(capacityRows);
    auto model = std::make_shared<Model>(std::move(bundle), device);
    return std::unique_ptr<Instance>(
        new Instance(std::make_unique<Impl>(std::move(model), capacityRows)));
  });
}

Result<std::unique_ptr<Instance>> Instance::share(int64_t capacityRows) const {
  return guardResult<std::unique_ptr<Instance>>([&] {
    expectRows(capacityRows);
    return std::unique_ptr<Instance>(
        new Instance(std::make_unique<Impl>(impl->model, capacityRows)));
  });
}

const Bundle &Instance::bundle() const { return *impl->model->bundle; }
int Instance::device() const { return impl->device.ordinal; }
int Instance::grid() const { return impl->model->kernel->grid; }
const std::string &Instance::deviceName() const { return impl->device.name; }
const std::string &Instance::arch() const { return impl->model->kernel->arch; }
ImageOrigin Instance::origin() const { return impl->model->kernel->origin; }

Status Instance::bindTensor(const std::string &name, const Tensor &tensor) {
  return guard([&] { impl->model->bind({{name, tensor}}); });
}

Status Instance::bindTensors(const TensorMap &map, const std::string &prefix) {
  return guard([&] { impl->model->bind(map, prefix); });
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

Status Instance::writeWeights(uint64_t offset, const void *data,
                              uint64_t bytes) {
  return guard([&] { impl->model->write(offset, data, bytes); });
}

std::vector<std::string> Instance::missingTensors() const {
  return impl->model->missing();
}

Status Instance::weightsReady() const {
  return guard([&] { impl->model->expectReady(); });
}

Status Instance::setState(const std::string &name, const void *data,
                          uint64_t bytes) {
  return guard([&] {
    StateSlot &slot = impl->slot(name);
    expectStateCopy(*slot.desc, slot.address ? slot.bytes : 0, data, bytes);
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
    expectStateCopy(*slot.desc, slot.address ? slot.bytes : 0, data, bytes);
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
    expectStateMemory(*slot.desc, address, bytes, impl->position);
    std::optional<CurrentContext> current;
    if (slot.owned.address() != 0) {
      // Steps in flight may still use what is freed.
      current.emplace(impl->device);
      impl->synchronize();
    }
    impl->adopt(slot, address, bytes);
    impl->capacity = impl->smallestCache();
  });
}

Status Instance::bindStates(const void *const *addresses, const size_t *bytes,
                            size_t count, int64_t position) {
  return guard([&] {
    std::vector<StateSlot> &states = impl->states;
    if (count != states.size())
      fail(MEGALITH_INVALID_ARGUMENT,
           "memory is given for {} states, expected all {} of block {}", count,
           states.size(), quote(impl->manifest.block));
    expectPosition(position,
                   impl->manifest.hasCaches() ? INT64_MAX : impl->capacity);
    bool frees = false;
    for (size_t i = 0; i < count; ++i) {
      expectStateMemory(*states[i].desc,
                        reinterpret_cast<uint64_t>(addresses[i]), bytes[i],
                        position);
      frees |= states[i].owned.address() != 0;
    }
    std::optional<CurrentContext> current;
    if (frees) {
      current.emplace(impl->device);
      impl->synchronize();
    }
    for (size_t i = 0; i < count; ++i)
      impl->adopt(states[i], reinterpret_cast<uint64_t>(addresses[i]),
                  bytes[i]);
    impl->capacity = impl->smallestCache();
    impl->position = position;
  });
}

Result<uint64_t> Instance::stateAddress(const std::string &name) const {
  return guardResult<uint64_t>(
      [&] { return uint64_t(impl->slot(name).address); });
}

int64_t Instance::capacity() const { return impl->capacity; }

Status Instance::setPosition(int64_t position) {
  return guard([&] {
    expectPosition(position, impl->capacity);
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
    // A copy would wait for earlier work, too, and without an end.
    if (impl->watchdog.count() != 0)
      impl->synchronize();
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

Status Instance::wait(void *stream, std::chrono::milliseconds limit) {
  return guard([&] {
    CurrentContext current(impl->device);
    const Driver &driver = impl->device.driver;
    auto start = std::chrono::steady_clock::now();
    for (;;) {
      CUresult result = driver.cuStreamQuery(static_cast<CUstream>(stream));
      if (result != CUDA_ERROR_NOT_READY)
        return impl->device.check(result, "cuStreamQuery");
      auto waited = std::chrono::steady_clock::now() - start;
      if (waited >= limit)
        break;
      // A step takes less than a millisecond; what takes longer can be noticed
      // a little late.
      if (waited > std::chrono::milliseconds(1))
        std::this_thread::sleep_for(std::chrono::microseconds(50));
    }
    fail(MEGALITH_TIMEOUT, "stream is not done after {} ms, position {}: {}",
         limit.count(), impl->position, impl->whereItHangs());
  });
}

void Instance::setWatchdog(std::chrono::milliseconds limit) {
  impl->watchdog = limit;
}

Status Instance::writeWorkspace(uint64_t offset, const void *data,
                                uint64_t bytes) {
  return guard([&] {
    uint64_t size = impl->manifest.workspaceBytes;
    if (offset > size || bytes > size - offset)
      fail(MEGALITH_INVALID_ARGUMENT,
           "bytes {}..{} are not inside the workspace of {}", offset,
           offset + bytes, size);
    if (bytes == 0)
      return;
    CurrentContext current(impl->device);
    impl->synchronize();
    impl->device.check(impl->device.driver.cuMemcpyHtoD(
                           impl->workspace.address() + offset, data, bytes),
                       "cuMemcpyHtoD of the workspace");
    impl->synchronize();
  });
}

Status Instance::readProbe(const std::string &name, void *data,
                           uint64_t bytes) {
  return guard([&] {
    const ProbeDesc &probe = findProbe(impl->manifest, name, data, bytes);
    CurrentContext current(impl->device);
    impl->synchronize();
    impl->device.check(
        impl->device.driver.cuMemcpyDtoH(
            data, impl->workspace.address() + probe.offset, bytes),
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
