// SPDX-License-Identifier: Apache-2.0
//
// A driver table over host memory. Its kernel copies the input to the output
// and records what it was launched with.

#ifndef MEGA_TEST_RUNTIME_FAKEDRIVER_H
#define MEGA_TEST_RUNTIME_FAKEDRIVER_H

#include "Driver.h"

#include "mega/abi/Kernel.h"

#include <atomic>
#include <map>
#include <string>
#include <vector>

/// What the fake device is and what happened on it.
struct FakeDevice {
  int devices = 1;
  int major = 9, minor = 0;
  int processors = 132;
  int sharedLimit = 232448;
  int staticShared = 1024;
  int maxThreads = 1024;
  int resident = 1;
  int cooperative = 1;
  /// Allocations above this fail for lack of memory.
  size_t memoryLimit = size_t(1) << 40;
  /// Whether what was launched never ends: waits block until this is false.
  std::atomic<bool> hangs{false};
  /// Set by a wait that blocked and was let go.
  std::atomic<bool> released{false};
  /// Loading PTX returns this.
  megalith::CUresult ptxResult = 0;
  /// The next launch returns this.
  megalith::CUresult launchResult = 0;

  /// Calls by name.
  std::map<std::string, int> calls;
  /// Net counts: all 0 when everything is released.
  int contextDepth = 0, retained = 0, modules = 0, streams = 0;
  std::map<megalith::CUdeviceptr, size_t> allocations;
  /// The text right behind an ELF header, or the whole of PTX.
  std::string image;
  int dynamicShared = -1;

  /// The last launch.
  unsigned grid = 0, block = 0, shared = 0;
  megalith::CUstream stream = nullptr;
  mega_kernel_header header = {};
  std::vector<megalith::CUdeviceptr> states;
  /// How many state addresses the kernel reads, and input bytes it copies.
  size_t stateCount = 2, vectorBytes = 32;

  /// All calls made so far.
  int totalCalls() const;
};

/// Installs a fresh fake driver while it lives.
class FakeDriverScope {
public:
  FakeDriverScope();
  /// Expects that nothing is left retained, loaded or allocated.
  ~FakeDriverScope();
  FakeDevice device;
};

#endif
