// SPDX-License-Identifier: Apache-2.0

#include "FakeDriver.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>
#include <cstring>
#include <thread>

using namespace megalith;

namespace {

FakeDevice *fake;

/// Counts a call and hands out the device.
FakeDevice &called(const char *name) {
  ++fake->calls[name];
  return *fake;
}

/// As called, for functions that need a current context.
FakeDevice &inContext(const char *name) {
  EXPECT_GT(fake->contextDepth, 0) << name;
  return called(name);
}

/// Expects [address, address + bytes) inside one allocation.
void expectAllocated(CUdeviceptr address, size_t bytes) {
  auto it = fake->allocations.upper_bound(address);
  bool inside = it != fake->allocations.begin();
  if (inside) {
    --it;
    inside = address + bytes <= it->first + it->second;
  }
  EXPECT_TRUE(inside) << bytes << " bytes";
}

char *hostPointer(CUdeviceptr address) {
  return reinterpret_cast<char *>(address);
}

Driver fakeTable() {
  Driver d;
  d.cuInit = [](unsigned) { return called("cuInit"), 0; };
  d.cuGetErrorName = [](CUresult, const char **text) {
    *text = "CUDA_ERROR_FAKE";
    return 0;
  };
  d.cuGetErrorString = [](CUresult, const char **text) {
    *text = "a fake error";
    return 0;
  };
  d.cuDeviceGetCount = [](int *count) {
    *count = called("cuDeviceGetCount").devices;
    return 0;
  };
  d.cuDeviceGet = [](CUdevice *device, int ordinal) {
    *device = ordinal;
    return 0;
  };
  d.cuDeviceGetName = [](char *name, int, CUdevice) {
    std::strcpy(name, "Fake GPU");
    return 0;
  };
  d.cuDeviceGetAttribute = [](int *value, int attribute, CUdevice) {
    const FakeDevice &device = called("cuDeviceGetAttribute");
    switch (attribute) {
    case CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT:
      *value = device.processors;
      return 0;
    case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR:
      *value = device.major;
      return 0;
    case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR:
      *value = device.minor;
      return 0;
    case CU_DEVICE_ATTRIBUTE_COOPERATIVE_LAUNCH:
      *value = device.cooperative;
      return 0;
    case CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN:
      *value = device.sharedLimit;
      return 0;
    }
    return 1;
  };
  d.cuDevicePrimaryCtxRetain = [](CUcontext *context, CUdevice) {
    *context = reinterpret_cast<CUcontext>(fake);
    ++fake->retained;
    return 0;
  };
  d.cuDevicePrimaryCtxRelease = [](CUdevice) {
    --fake->retained;
    return 0;
  };
  d.cuCtxPushCurrent = [](CUcontext context) {
    EXPECT_EQ(context, reinterpret_cast<CUcontext>(fake));
    ++called("cuCtxPushCurrent").contextDepth;
    return 0;
  };
  d.cuCtxPopCurrent = [](CUcontext *context) {
    *context = reinterpret_cast<CUcontext>(fake);
    --called("cuCtxPopCurrent").contextDepth;
    return 0;
  };
  d.cuCtxSynchronize = [] {
    // A thread of its own may wait here while the test goes on.
    FakeDevice &device = *fake;
    if (!device.hangs)
      return inContext("cuCtxSynchronize"), 0;
    while (device.hangs)
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    device.released = true;
    return 0;
  };
  d.cuModuleLoadData = [](CUmodule *module, const void *image) {
    FakeDevice &device = inContext("cuModuleLoadData");
    const char *text = static_cast<const char *>(image);
    if (std::strncmp(text,
                     "\x7f"
                     "ELF",
                     4) == 0)
      text += 64;
    else if (device.ptxResult != 0)
      return device.ptxResult;
    device.image = text;
    *module = reinterpret_cast<CUmodule>(fake);
    ++device.modules;
    return 0;
  };
  d.cuModuleUnload = [](CUmodule) {
    --inContext("cuModuleUnload").modules;
    return 0;
  };
  d.cuModuleGetFunction = [](CUfunction *function, CUmodule, const char *name) {
    *function = reinterpret_cast<CUfunction>(fake);
    return std::strcmp(name, "megalith_sample") == 0 ? 0 : 500;
  };
  d.cuFuncGetAttribute = [](int *value, int attribute, CUfunction) {
    *value = attribute == CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK
                 ? fake->maxThreads
                 : fake->staticShared;
    return 0;
  };
  d.cuFuncSetAttribute = [](CUfunction, int attribute, int value) {
    EXPECT_EQ(attribute, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES);
    fake->dynamicShared = value;
    return 0;
  };
  d.cuOccupancyMaxActiveBlocksPerMultiprocessor = [](int *blocks, CUfunction,
                                                     int, size_t) {
    *blocks = fake->resident;
    return 0;
  };
  d.cuMemAlloc = [](CUdeviceptr *address, size_t bytes) {
    FakeDevice &device = inContext("cuMemAlloc");
    if (bytes > device.memoryLimit)
      return CUDA_ERROR_OUT_OF_MEMORY;
    void *memory = std::aligned_alloc(256, (bytes + 255) / 256 * 256);
    *address = reinterpret_cast<CUdeviceptr>(memory);
    device.allocations[*address] = bytes;
    return CUDA_SUCCESS;
  };
  d.cuMemFree = [](CUdeviceptr address) {
    EXPECT_EQ(inContext("cuMemFree").allocations.erase(address), 1u);
    std::free(hostPointer(address));
    return 0;
  };
  d.cuMemsetD8 = [](CUdeviceptr address, unsigned char value, size_t bytes) {
    inContext("cuMemsetD8");
    expectAllocated(address, bytes);
    std::memset(hostPointer(address), value, bytes);
    return 0;
  };
  d.cuMemcpyHtoD = [](CUdeviceptr to, const void *from, size_t bytes) {
    inContext("cuMemcpyHtoD");
    expectAllocated(to, bytes);
    std::memcpy(hostPointer(to), from, bytes);
    return 0;
  };
  d.cuMemcpyDtoH = [](void *to, CUdeviceptr from, size_t bytes) {
    inContext("cuMemcpyDtoH");
    expectAllocated(from, bytes);
    std::memcpy(to, hostPointer(from), bytes);
    return 0;
  };
  d.cuMemcpyDtoHAsync = [](void *to, CUdeviceptr from, size_t bytes,
                           CUstream stream) {
    inContext("cuMemcpyDtoHAsync");
    EXPECT_NE(stream, nullptr) << "waits for the kernel that hangs";
    expectAllocated(from, bytes);
    std::memcpy(to, hostPointer(from), bytes);
    return 0;
  };
  d.cuStreamCreate = [](CUstream *stream, unsigned flags) {
    EXPECT_EQ(flags, CU_STREAM_NON_BLOCKING);
    FakeDevice &device = inContext("cuStreamCreate");
    ++device.streams;
    *stream = reinterpret_cast<CUstream>(&device.streams);
    return 0;
  };
  d.cuStreamDestroy = [](CUstream) {
    --inContext("cuStreamDestroy").streams;
    return 0;
  };
  d.cuStreamQuery = [](CUstream stream) {
    FakeDevice &device = inContext("cuStreamQuery");
    bool side = stream == reinterpret_cast<CUstream>(&device.streams);
    return device.hangs && !side ? CUDA_ERROR_NOT_READY : CUDA_SUCCESS;
  };
  d.cuLaunchCooperativeKernel = [](CUfunction, unsigned gridX, unsigned gridY,
                                   unsigned gridZ, unsigned blockX,
                                   unsigned blockY, unsigned blockZ,
                                   unsigned shared, CUstream stream,
                                   void **parameters) {
    FakeDevice &device = inContext("cuLaunchCooperativeKernel");
    if (device.launchResult != 0)
      return device.launchResult;
    EXPECT_EQ(gridY * gridZ * blockY * blockZ, 1u);
    device.grid = gridX;
    device.block = blockX;
    device.shared = shared;
    device.stream = stream;
    const char *parameter = static_cast<const char *>(parameters[0]);
    std::memcpy(&device.header, parameter, sizeof(device.header));
    device.states.resize(device.stateCount);
    std::memcpy(device.states.data(), parameter + sizeof(device.header),
                8 * device.stateCount);
    std::memmove(device.header.output, device.header.input, device.vectorBytes);
    return 0;
  };
  return d;
}

} // namespace

int FakeDevice::totalCalls() const {
  int total = 0;
  for (const auto &named : calls)
    total += named.second;
  return total;
}

FakeDriverScope::FakeDriverScope() {
  static const Driver table = fakeTable();
  fake = &device;
  replaceDriver(&table);
}

FakeDriverScope::~FakeDriverScope() {
  EXPECT_EQ(device.contextDepth, 0);
  EXPECT_EQ(device.retained, 0);
  EXPECT_EQ(device.modules, 0);
  EXPECT_EQ(device.streams, 0);
  EXPECT_TRUE(device.allocations.empty());
  replaceDriver(nullptr);
  fake = nullptr;
}
