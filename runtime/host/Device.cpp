// SPDX-License-Identifier: Apache-2.0

#include "Device.h"

#include "Error.h"

#include <algorithm>
#include <condition_variable>
#include <mutex>
#include <thread>

using namespace megalith;

Device::Device(int ordinal) : driver(openDriver()), ordinal(ordinal) {
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

bool Device::waitIdle(std::chrono::milliseconds limit) const {
  if (limit.count() == 0) {
    check(driver.cuCtxSynchronize(), "cuCtxSynchronize");
    return true;
  }
  // The driver has no wait with an end, so another thread waits. If its kernel
  // never ends, neither does it; it holds nothing but what it shares here.
  struct Shared {
    std::mutex mutex;
    std::condition_variable done;
    std::optional<CUresult> result;
  };
  auto shared = std::make_shared<Shared>();
  std::thread([shared, context = context, &driver = driver] {
    CUcontext popped;
    CUresult result = driver.cuCtxPushCurrent(context);
    if (result == CUDA_SUCCESS) {
      result = driver.cuCtxSynchronize();
      driver.cuCtxPopCurrent(&popped);
    }
    std::lock_guard<std::mutex> lock(shared->mutex);
    shared->result = result;
    shared->done.notify_one();
  }).detach();
  std::unique_lock<std::mutex> lock(shared->mutex);
  if (!shared->done.wait_for(lock, limit,
                             [&] { return shared->result.has_value(); }))
    return false;
  check(*shared->result, "cuCtxSynchronize");
  return true;
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

Kernel::Kernel(const Device &device, const Bundle &bundle) : device(device) {
  if (!device.attribute(CU_DEVICE_ATTRIBUTE_COOPERATIVE_LAUNCH))
    fail(MEGALITH_NO_KERNEL, "device {} has no cooperative launch",
         device.name);
  try {
    loadFitting(bundle);
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

void Kernel::load(const KernelImage &image) {
  device.check(device.driver.cuModuleLoadData(&module, image.bytes.data()),
               fmt::format("cuModuleLoadData of {}", image.label).c_str());
  label = image.label;
  arch = image.arch;
  origin = image.origin;
}

/// A cubin that fits is final. What stands in for one is tried in turn, and a
/// failure is a reason to go on.
void Kernel::loadFitting(const Bundle &bundle) {
  const Manifest &manifest = bundle.manifest;
  if (const TargetDesc *target = chooseTarget(manifest, device.capability)) {
    load(readImage(bundle, *target, ImageOrigin::Cubin));
    return prepare(manifest);
  }
  auto names = [](const std::vector<TargetDesc> &targets) {
    std::string text;
    for (const TargetDesc &target : targets)
      text += (text.empty() ? "" : ", ") + target.arch;
    return text.empty() ? "none" : text;
  };
  std::string reasons =
      fmt::format("no kernel for device sm_{} ({}); bundle has: {}; ptx: {}",
                  device.capability, device.name, names(manifest.targets),
                  names(manifest.ptx));
  if (!jitAllowed())
    fail(MEGALITH_NO_KERNEL, "{}; MEGALITH_JIT forbids to compile one",
         reasons);
  auto attempt = [&](auto make) {
    try {
      load(make());
      return true;
    } catch (const Error &error) {
      reasons += "; " + error.status.message();
      return false;
    }
  };
  const TargetDesc *ptx = choosePtx(manifest, device.capability);
  bool loaded =
      (ptx &&
       attempt([&] { return readImage(bundle, *ptx, ImageOrigin::Ptx); })) ||
      attempt(
          [&] { return megalith::compileImage(bundle, device.capability); });
  if (!loaded)
    fail(MEGALITH_NO_KERNEL, "{}", reasons);
  prepare(manifest);
}

void Kernel::prepare(const Manifest &manifest) {
  const Driver &driver = device.driver;
  device.check(
      driver.cuModuleGetFunction(&function, module, manifest.kernel.c_str()),
      fmt::format("cuModuleGetFunction of {} in {}", quote(manifest.kernel),
                  label)
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
