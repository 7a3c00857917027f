// SPDX-License-Identifier: Apache-2.0
/// \file
/// A device through the CUDA driver, opened at run time.

#include "Gpu.h"

#include <fmt/format.h>

#include <dlfcn.h>
#include <map>
#include <set>

using namespace megalith::bench;

// The driver functions that measuring needs, declared as in cuda.h, so that
// building needs no CUDA header and starting needs no driver.
#define MEGALITH_BENCH_DRIVER(X)                                               \
  X(init, "cuInit", (unsigned))                                                \
  X(driverVersion, "cuDriverGetVersion", (int *))                              \
  X(errorName, "cuGetErrorName", (int, const char **))                         \
  X(deviceCount, "cuDeviceGetCount", (int *))                                  \
  X(deviceGet, "cuDeviceGet", (int *, int))                                    \
  X(deviceName, "cuDeviceGetName", (char *, int, int))                         \
  X(attribute, "cuDeviceGetAttribute", (int *, int, int))                      \
  X(retain, "cuDevicePrimaryCtxRetain", (void **, int))                        \
  X(release, "cuDevicePrimaryCtxRelease_v2", (int))                            \
  X(push, "cuCtxPushCurrent_v2", (void *))                                     \
  X(pop, "cuCtxPopCurrent_v2", (void **))                                      \
  X(synchronize, "cuCtxSynchronize", (void))                                   \
  X(alloc, "cuMemAlloc_v2", (uint64_t *, size_t))                              \
  X(free, "cuMemFree_v2", (uint64_t))                                          \
  X(set, "cuMemsetD8_v2", (uint64_t, unsigned char, size_t))                   \
  X(copyIn, "cuMemcpyHtoD_v2", (uint64_t, const void *, size_t))               \
  X(copyOut, "cuMemcpyDtoH_v2", (void *, uint64_t, size_t))                    \
  X(moduleLoad, "cuModuleLoadData", (void **, const void *))                   \
  X(moduleUnload, "cuModuleUnload", (void *))                                  \
  X(moduleFunction, "cuModuleGetFunction", (void **, void *, const char *))    \
  X(functionSet, "cuFuncSetAttribute", (void *, int, int))                     \
  X(launchPlain, "cuLaunchKernel",                                             \
    (void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,       \
     unsigned, void *, void **, void **))                                      \
  X(launchCooperative, "cuLaunchCooperativeKernel",                            \
    (void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,       \
     unsigned, void *, void **))                                               \
  X(eventCreate, "cuEventCreate", (void **, unsigned))                         \
  X(eventDestroy, "cuEventDestroy_v2", (void *))                               \
  X(eventRecord, "cuEventRecord", (void *, void *))                            \
  X(eventSynchronize, "cuEventSynchronize", (void *))                          \
  X(eventElapsed, "cuEventElapsedTime", (float *, void *, void *))

namespace {

struct Driver {
#define MEGALITH_BENCH_MEMBER(name, symbol, parameters) int(*name) parameters;
  MEGALITH_BENCH_DRIVER(MEGALITH_BENCH_MEMBER)
#undef MEGALITH_BENCH_MEMBER
};

Driver openDriver() {
  void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  if (!library)
    throw BenchError("libcuda.so.1 could not be opened: measuring needs a GPU "
                     "and its driver");
  Driver driver;
#define MEGALITH_BENCH_LOAD(name, symbol, parameters)                          \
  driver.name = reinterpret_cast<int(*) parameters>(dlsym(library, symbol));   \
  if (!driver.name)                                                            \
    throw BenchError("libcuda.so.1 has no " symbol);
  MEGALITH_BENCH_DRIVER(MEGALITH_BENCH_LOAD)
#undef MEGALITH_BENCH_LOAD
  return driver;
}

/// CUdevice_attribute and CUfunction_attribute values of cuda.h.
constexpr int kProcessors = 16, kMajor = 75, kMinor = 76, kSharedOptin = 97;
constexpr int kFunctionDynamicShared = 8;

class CudaGpu : public Gpu {
public:
  explicit CudaGpu(int ordinal) : driver(openDriver()) {
    check(driver.init(0), "cuInit");
    int count = 0;
    check(driver.deviceCount(&count), "cuDeviceGetCount");
    if (ordinal < 0 || ordinal >= count)
      throw BenchError(
          fmt::format("--device is {}, expected one of {} devices, from 0",
                      ordinal, count));
    check(driver.deviceGet(&device, ordinal), "cuDeviceGet");
    char name[256] = {};
    check(driver.deviceName(name, sizeof name - 1, device), "cuDeviceGetName");
    int major = attribute(kMajor), minor = attribute(kMinor);
    own.name = name;
    // Targets from 9.0 on have instructions of their own, behind the suffix.
    own.arch = fmt::format("sm_{}{}{}", major, minor, major >= 9 ? "a" : "");
    own.sms = attribute(kProcessors);
    own.sharedBytes = attribute(kSharedOptin);
    check(driver.driverVersion(&own.driver), "cuDriverGetVersion");
    check(driver.retain(&context, device), "cuDevicePrimaryCtxRetain");
    check(driver.push(context), "cuCtxPushCurrent");
  }

  ~CudaGpu() override {
    driver.synchronize();
    for (uint64_t address : buffers)
      driver.free(address);
    for (void *event : events)
      driver.eventDestroy(event);
    if (module)
      driver.moduleUnload(module);
    void *popped;
    driver.pop(&popped);
    driver.release(device);
  }

  const DeviceFacts &facts() const override { return own; }

  uint64_t allocate(uint64_t bytes) override {
    uint64_t address = 0;
    check(driver.alloc(&address, bytes),
          fmt::format("cuMemAlloc of {} bytes", bytes));
    buffers.insert(address);
    zero(address, bytes);
    return address;
  }

  void free(uint64_t address) override {
    if (buffers.erase(address))
      check(driver.free(address), "cuMemFree");
  }

  void zero(uint64_t address, uint64_t bytes) override {
    check(driver.set(address, 0, bytes), "cuMemsetD8");
  }

  void upload(uint64_t address, const void *data, uint64_t bytes) override {
    check(driver.copyIn(address, data, bytes), "cuMemcpyHtoD");
  }

  void download(void *data, uint64_t address, uint64_t bytes) override {
    check(driver.copyOut(data, address, bytes), "cuMemcpyDtoH");
  }

  void loadKernels(const std::string &cubin) override {
    check(driver.moduleLoad(&module, cubin.data()),
          "cuModuleLoadData of the measuring kernels");
  }

  void launch(const Launch &launch) override {
    void *function = find(launch.kernel);
    if (launch.sharedBytes > 0)
      check(driver.functionSet(function, kFunctionDynamicShared,
                               launch.sharedBytes),
            "cuFuncSetAttribute");
    std::vector<uint64_t> values = launch.parameters;
    std::vector<void *> pointers;
    for (uint64_t &value : values)
      pointers.push_back(&value);
    if (launch.oneStruct)
      pointers.resize(1);
    int result =
        launch.cooperative
            ? driver.launchCooperative(function, launch.grid, 1, 1,
                                       launch.threads, 1, 1, launch.sharedBytes,
                                       nullptr, pointers.data())
            : driver.launchPlain(function, launch.grid, 1, 1, launch.threads, 1,
                                 1, launch.sharedBytes, nullptr,
                                 pointers.data(), nullptr);
    check(result, "launching " + launch.kernel);
  }

  std::vector<double> timeEach(int count,
                               const std::function<void(int)> &body) override {
    makeEvents(count + 1);
    record(0);
    for (int i = 0; i < count; ++i) {
      body(i);
      record(i + 1);
    }
    check(driver.eventSynchronize(events[count]), "running steps");
    std::vector<double> times;
    for (int i = 0; i < count; ++i)
      times.push_back(elapsed(i, i + 1));
    return times;
  }

  double timeAll(int count, const std::function<void(int)> &body) override {
    makeEvents(2);
    record(0);
    for (int i = 0; i < count; ++i)
      body(i);
    record(1);
    check(driver.eventSynchronize(events[1]), "running steps");
    return elapsed(0, 1) / count;
  }

private:
  void check(int result, const std::string &what) {
    if (result == 0)
      return;
    const char *name = nullptr;
    driver.errorName(result, &name);
    throw BenchError(fmt::format("{} failed: {} ({})", what,
                                 name ? name : "unknown error", result));
  }

  int attribute(int which) {
    int value = 0;
    check(driver.attribute(&value, which, device), "cuDeviceGetAttribute");
    return value;
  }

  void *find(const std::string &kernel) {
    if (!module)
      throw BenchError("the measuring kernels are not loaded");
    void *&function = functions[kernel];
    if (!function)
      check(driver.moduleFunction(&function, module, kernel.c_str()),
            "cuModuleGetFunction of " + kernel);
    return function;
  }

  void makeEvents(size_t count) {
    while (events.size() < count) {
      void *event = nullptr;
      check(driver.eventCreate(&event, 0), "cuEventCreate");
      events.push_back(event);
    }
  }

  void record(int index) {
    check(driver.eventRecord(events[index], nullptr), "cuEventRecord");
  }

  double elapsed(int from, int to) {
    float milliseconds = 0;
    check(driver.eventElapsed(&milliseconds, events[from], events[to]),
          "cuEventElapsedTime");
    return milliseconds * 1e3;
  }

  Driver driver;
  DeviceFacts own;
  int device = 0;
  void *context = nullptr, *module = nullptr;
  std::map<std::string, void *> functions;
  std::set<uint64_t> buffers;
  std::vector<void *> events;
};

} // namespace

std::unique_ptr<Gpu> megalith::bench::openGpu(int ordinal) {
  return std::make_unique<CudaGpu>(ordinal);
}
