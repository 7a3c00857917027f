// SPDX-License-Identifier: Apache-2.0
/// \file
/// Device buffers and driver events.

#include "DeviceClock.h"

#include "llvm/Support/FormatVariadic.h"

#include <algorithm>
#include <chrono>
#include <dlfcn.h>
#include <vector>

using namespace llvm;
using namespace mega::run;

// The few driver functions that timing needs, declared as in cuda.h, so that
// building needs no CUDA header and starting needs no driver.
#define MEGA_CLOCK_FUNCTIONS(X)                                                \
  X(init, "cuInit", (unsigned))                                                \
  X(deviceGet, "cuDeviceGet", (int *, int))                                    \
  X(retain, "cuDevicePrimaryCtxRetain", (void **, int))                        \
  X(release, "cuDevicePrimaryCtxRelease_v2", (int))                            \
  X(push, "cuCtxPushCurrent_v2", (void *))                                     \
  X(pop, "cuCtxPopCurrent_v2", (void **))                                      \
  X(alloc, "cuMemAlloc_v2", (unsigned long long *, size_t))                    \
  X(free, "cuMemFree_v2", (unsigned long long))                                \
  X(copyIn, "cuMemcpyHtoD_v2", (unsigned long long, const void *, size_t))     \
  X(eventCreate, "cuEventCreate", (void **, unsigned))                         \
  X(eventDestroy, "cuEventDestroy_v2", (void *))                               \
  X(eventRecord, "cuEventRecord", (void *, void *))                            \
  X(eventSynchronize, "cuEventSynchronize", (void *))                          \
  X(eventElapsed, "cuEventElapsedTime", (float *, void *, void *))

struct DeviceClock::Impl {
#define MEGA_CLOCK_MEMBER(name, symbol, parameters) int(*name) parameters;
  MEGA_CLOCK_FUNCTIONS(MEGA_CLOCK_MEMBER)
#undef MEGA_CLOCK_MEMBER
  int device = 0;
  void *context = nullptr;
  std::vector<unsigned long long> buffers;
};

/// Success for the driver's 0.
static Error check(int result, const char *call) {
  if (result == 0)
    return Error::success();
  return createStringError(
      formatv("{0} failed with CUDA error {1}", call, result).str());
}

DeviceClock::DeviceClock(std::unique_ptr<Impl> impl) : impl(std::move(impl)) {}

DeviceClock::~DeviceClock() {
  impl->push(impl->context);
  for (unsigned long long buffer : impl->buffers)
    impl->free(buffer);
  void *popped;
  impl->pop(&popped);
  impl->release(impl->device);
}

Expected<std::unique_ptr<DeviceClock>> DeviceClock::create(int device) {
  void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_GLOBAL);
  if (!library)
    return createStringError("libcuda.so.1 could not be opened");
  auto impl = std::make_unique<Impl>();
#define MEGA_CLOCK_LOAD(name, symbol, parameters)                              \
  impl->name = reinterpret_cast<int(*) parameters>(dlsym(library, symbol));    \
  if (!impl->name)                                                             \
    return createStringError("libcuda.so.1 has no " symbol);
  MEGA_CLOCK_FUNCTIONS(MEGA_CLOCK_LOAD)
#undef MEGA_CLOCK_LOAD
  if (Error error = check(impl->init(0), "cuInit"))
    return error;
  if (Error error =
          check(impl->deviceGet(&impl->device, device), "cuDeviceGet"))
    return error;
  if (Error error = check(impl->retain(&impl->context, impl->device),
                          "cuDevicePrimaryCtxRetain"))
    return error;
  return std::unique_ptr<DeviceClock>(new DeviceClock(std::move(impl)));
}

Expected<uint64_t> DeviceClock::upload(const void *data, uint64_t bytes) {
  unsigned long long address = 0;
  impl->push(impl->context);
  int allocated = impl->alloc(&address, bytes);
  int copied = allocated ? 0 : impl->copyIn(address, data, bytes);
  void *popped;
  impl->pop(&popped);
  if (Error error = check(allocated, "cuMemAlloc"))
    return error;
  impl->buffers.push_back(address);
  if (Error error = check(copied, "cuMemcpyHtoD"))
    return error;
  return address;
}

/// Launches that a stream's queue surely holds.
static constexpr int64_t kQueued = 64;

Expected<StepTime> DeviceClock::time(int64_t count,
                                     function_ref<Error()> launch) {
  if (Error error = launch())
    return error;
  void *events[2] = {};
  impl->push(impl->context);
  int result = 0;
  for (void *&event : events)
    result = result ? result : impl->eventCreate(&event, 0);
  result = result ? result : impl->eventRecord(events[0], nullptr);
  Error failure = Error::success();
  using Clock = std::chrono::steady_clock;
  Clock::time_point begin = Clock::now(), queued = begin;
  for (int64_t i = 0; i < count && !result && !failure; ++i) {
    failure = launch();
    if (i + 1 == std::min(count, kQueued))
      queued = Clock::now();
  }
  float milliseconds = 0;
  result = result ? result : impl->eventRecord(events[1], nullptr);
  result = result ? result : impl->eventSynchronize(events[1]);
  result =
      result ? result : impl->eventElapsed(&milliseconds, events[0], events[1]);
  for (void *event : events)
    if (event)
      impl->eventDestroy(event);
  void *popped;
  impl->pop(&popped);
  if (failure)
    return failure;
  if (Error error = check(result, "timing by events"))
    return error;
  std::chrono::duration<double, std::micro> enqueue = queued - begin;
  return StepTime{milliseconds * 1e3 / count,
                  enqueue.count() / std::min(count, kQueued)};
}
