// SPDX-License-Identifier: Apache-2.0

#include "Device.h"

#include "Error.h"
#include "File.h"

#include <algorithm>

using namespace megalith;

namespace {

constexpr uint64_t maxCubinBytes = 1ull << 30;

} // namespace

Device::Device(int ordinal) : driver(openDriver()) {
  check(driver.cuInit(0), "cuInit");
  int count = 0;
  check(driver.cuDeviceGetCount(&count), "cuDeviceGetCount");
  if (ordinal < 0 || ordinal >= count)
    fail(MEGALITH_NO_KERNEL, "no device {}: the machine has {}", ordinal,
         count);
  check(driver.cuDeviceGet(&handle, ordinal), "cuDeviceGet");
  char text[256] = {};
  check(driver.cuDeviceGetName(text, sizeof(text) - 1, handle),
        "cuDeviceGetName");
  name = text;
  capability = 10 * attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR) +
               attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
  // Last, since a constructor that throws runs no destructor.
  check(driver.cuDevicePrimaryCtxRetain(&context, handle),
        "cuDevicePrimaryCtxRetain");
}

Device::~Device() { driver.cuDevicePrimaryCtxRelease(handle); }

int Device::attribute(int which) const {
  int value = 0;
  check(driver.cuDeviceGetAttribute(&value, which, handle),
        "cuDeviceGetAttribute");
  return value;
}

DeviceBuffer::DeviceBuffer(const Device &device, uint64_t bytes,
                           const std::string &what)
    : device(&device) {
  uint64_t size = std::max<uint64_t>(bytes, 1);
  std::string call = fmt::format("cuMemAlloc of {} bytes for {}", size, what);
  device.check(device.driver.cuMemAlloc(&start, size), call.c_str());
  CUresult zeroed = device.driver.cuMemsetD8(start, 0, size);
  if (zeroed != CUDA_SUCCESS)
    release();
  device.check(zeroed, "cuMemsetD8");
}

void DeviceBuffer::release() noexcept {
  if (start == 0)
    return;
  CUcontext popped;
  device->driver.cuCtxPushCurrent(device->context);
  device->driver.cuMemFree(start);
  device->driver.cuCtxPopCurrent(&popped);
  start = 0;
}

const TargetDesc *megalith::chooseTarget(const Manifest &manifest,
                                         int capability) {
  const TargetDesc *best = nullptr;
  for (const TargetDesc &target : manifest.targets) {
    bool runs = target.exact ? target.capability == capability
                             : target.capability / 10 == capability / 10 &&
                                   target.capability <= capability;
    if (!runs)
      continue;
    auto rank = [](const TargetDesc &t) {
      return std::make_pair(t.exact, t.capability);
    };
    if (!best || rank(target) > rank(*best))
      best = &target;
  }
  return best;
}

Kernel::Kernel(const Device &device, const Bundle &bundle) : device(device) {
  target = chooseTarget(bundle.manifest, device.capability);
  if (!target) {
    std::string has;
    for (const TargetDesc &other : bundle.manifest.targets)
      has += (has.empty() ? "" : ", ") + other.arch;
    fail(MEGALITH_NO_KERNEL, "no kernel for device sm_{} ({}); bundle has: {}",
         device.capability, device.name, has.empty() ? "none" : has);
  }
  if (!device.attribute(CU_DEVICE_ATTRIBUTE_COOPERATIVE_LAUNCH))
    fail(MEGALITH_NO_KERNEL, "device {} has no cooperative launch",
         device.name);
  try {
    load(bundle);
  } catch (...) {
    // A constructor that throws runs no destructor.
    if (module)
      device.driver.cuModuleUnload(module);
    throw;
  }
}

Kernel::~Kernel() {
  CUcontext popped;
  device.driver.cuCtxPushCurrent(device.context);
  device.driver.cuModuleUnload(module);
  device.driver.cuCtxPopCurrent(&popped);
}

void Kernel::load(const Bundle &bundle) {
  const Driver &driver = device.driver;
  const Manifest &manifest = bundle.manifest;
  std::string path = bundle.directory + "/" + target->file;
  std::string image = readFile(path, maxCubinBytes);
  device.check(driver.cuModuleLoadData(&module, image.data()),
               fmt::format("cuModuleLoadData of {}", quote(path)).c_str());
  device.check(
      driver.cuModuleGetFunction(&function, module, manifest.kernel.c_str()),
      fmt::format("cuModuleGetFunction of {} in {}", quote(manifest.kernel),
                  quote(path))
          .c_str());

  int maxThreads = 0;
  device.check(
      driver.cuFuncGetAttribute(
          &maxThreads, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, function),
      "cuFuncGetAttribute");
  if (manifest.threads > maxThreads)
    fail(MEGALITH_RESOURCE_LIMIT,
         "kernel {} wants {} threads a cta, device {} allows it {}",
         manifest.kernel, manifest.threads, device.name, maxThreads);

  int staticBytes = 0;
  device.check(driver.cuFuncGetAttribute(
                   &staticBytes, CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES, function),
               "cuFuncGetAttribute");
  int limit =
      device.attribute(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN);
  if (staticBytes + manifest.sharedBytes > limit)
    fail(MEGALITH_RESOURCE_LIMIT,
         "kernel {} wants {} + {} bytes of static and dynamic shared memory, "
         "device {} allows {}",
         manifest.kernel, staticBytes, manifest.sharedBytes, device.name,
         limit);
  device.check(driver.cuFuncSetAttribute(
                   function, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
                   manifest.sharedBytes),
               "cuFuncSetAttribute");

  // One CTA an SM, so the grid is co-resident if one fits an SM.
  int resident = 0;
  device.check(
      driver.cuOccupancyMaxActiveBlocksPerMultiprocessor(
          &resident, function, manifest.threads, size_t(manifest.sharedBytes)),
      "cuOccupancyMaxActiveBlocksPerMultiprocessor");
  int processors = device.attribute(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
  grid = std::min(processors, manifest.maxCtas);
  if (int64_t(resident) * processors < grid)
    fail(MEGALITH_RESOURCE_LIMIT,
         "a cooperative grid of {} ctas does not fit device {}: {} ctas of {} "
         "threads and {} bytes of shared memory fit each of its {} sms",
         grid, device.name, resident, manifest.threads, manifest.sharedBytes,
         processors);
}
