// SPDX-License-Identifier: Apache-2.0
/// \file
/// Streams, events and buffers of one device.

#include "Gpu.h"

#include "Error.h"

#include <dlfcn.h>

using namespace mega::audit;
using namespace megalith;

namespace {

/// CUdevice_attribute: kHz, bits, bytes.
constexpr int memoryClockRate = 36;
constexpr int memoryBusWidth = 37;
constexpr int l2CacheSize = 38;

} // namespace

/// The few driver functions that only timing needs, as in cuda.h.
struct Gpu::Events {
  CUresult (*create)(void **, unsigned);
  CUresult (*destroy)(void *);
  CUresult (*record)(void *, CUstream);
  CUresult (*synchronize)(void *);
  CUresult (*elapsed)(float *, void *, void *);

  Events() {
    void *library = ::dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    auto bind = [&](auto &function, const char *name) {
      function = reinterpret_cast<std::decay_t<decltype(function)>>(
          library ? ::dlsym(library, name) : nullptr);
      if (!function)
        fail(MEGALITH_NO_DRIVER, "libcuda.so.1 has no {}", name);
    };
    bind(create, "cuEventCreate");
    bind(destroy, "cuEventDestroy_v2");
    bind(record, "cuEventRecord");
    bind(synchronize, "cuEventSynchronize");
    bind(elapsed, "cuEventElapsedTime");
  }
};

Gpu::Gpu(int ordinal) : device(ordinal) {}

Gpu::~Gpu() {
  CUcontext popped;
  device.driver.cuCtxPushCurrent(device.context);
  for (CUstream stream : streams)
    device.driver.cuStreamDestroy(stream);
  device.driver.cuCtxPopCurrent(&popped);
}

uint64_t Gpu::allocate(uint64_t bytes) {
  CurrentContext current(device);
  buffers.emplace_back(device, bytes, "the audit");
  // Zeroing is asynchronous.
  device.check(device.driver.cuCtxSynchronize(), "cuCtxSynchronize");
  return buffers.back().address();
}

uint64_t Gpu::upload(const void *data, uint64_t bytes) {
  uint64_t address = allocate(bytes);
  write(address, data, bytes);
  return address;
}

void Gpu::write(uint64_t address, const void *data, uint64_t bytes) {
  CurrentContext current(device);
  device.check(device.driver.cuMemcpyHtoD(address, data, bytes),
               "cuMemcpyHtoD");
  device.check(device.driver.cuCtxSynchronize(), "cuCtxSynchronize");
}

std::vector<uint8_t> Gpu::download(uint64_t address, uint64_t bytes) {
  CurrentContext current(device);
  device.check(device.driver.cuCtxSynchronize(), "cuCtxSynchronize");
  std::vector<uint8_t> data(bytes);
  device.check(device.driver.cuMemcpyDtoH(data.data(), address, bytes),
               "cuMemcpyDtoH");
  return data;
}

void *Gpu::stream() {
  CurrentContext current(device);
  CUstream stream = nullptr;
  device.check(device.driver.cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING),
               "cuStreamCreate");
  streams.push_back(stream);
  return stream;
}

double Gpu::time(void *stream, int count, const std::function<void()> &launch) {
  Events events;
  auto queue = static_cast<CUstream>(stream);
  CurrentContext current(device);
  launch();
  void *around[2] = {};
  for (void *&event : around)
    device.check(events.create(&event, 0), "cuEventCreate");
  device.check(events.record(around[0], queue), "cuEventRecord");
  for (int i = 0; i < count; ++i)
    launch();
  device.check(events.record(around[1], queue), "cuEventRecord");
  device.check(events.synchronize(around[1]), "cuEventSynchronize");
  float milliseconds = 0;
  device.check(events.elapsed(&milliseconds, around[0], around[1]),
               "cuEventElapsedTime");
  for (void *event : around)
    events.destroy(event);
  return milliseconds * 1e3 / count;
}

/// An attribute, or 0 if the driver does not give it.
static uint64_t attributeOf(const Device &device, int which) {
  int value = 0;
  if (device.driver.cuDeviceGetAttribute(&value, which, device.handle) !=
      CUDA_SUCCESS)
    return 0;
  return uint64_t(value);
}

double Gpu::peakBandwidth() const {
  // Two transfers a clock of so many kHz.
  return 2e3 * double(attributeOf(device, memoryClockRate)) *
         double(attributeOf(device, memoryBusWidth)) / 8;
}

uint64_t Gpu::cacheBytes() const { return attributeOf(device, l2CacheSize); }
