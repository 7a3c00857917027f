// SPDX-License-Identifier: Apache-2.0

#include "FakeGpu.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>

using namespace megalith::bench;

static char *pointer(uint64_t address) {
  return reinterpret_cast<char *>(address);
}

FakeGpu::~FakeGpu() {
  for (auto [address, bytes] : allocations)
    std::free(pointer(address));
}

uint64_t FakeGpu::allocate(uint64_t bytes) {
  // Untouched pages cost nothing, so large buffers are fine.
  auto address = reinterpret_cast<uint64_t>(std::calloc(bytes, 1));
  allocations[address] = bytes;
  return address;
}

void FakeGpu::free(uint64_t address) {
  EXPECT_EQ(allocations.erase(address), 1u);
  std::free(pointer(address));
}

void FakeGpu::expectInside(uint64_t address, uint64_t bytes) {
  auto it = allocations.upper_bound(address);
  ASSERT_NE(it, allocations.begin());
  --it;
  EXPECT_LE(address + bytes, it->first + it->second);
}

void FakeGpu::zero(uint64_t address, uint64_t bytes) {
  expectInside(address, bytes);
  std::memset(pointer(address), 0, bytes);
}

void FakeGpu::upload(uint64_t address, const void *data, uint64_t bytes) {
  expectInside(address, bytes);
  std::memcpy(pointer(address), data, bytes);
}

void FakeGpu::download(void *data, uint64_t address, uint64_t bytes) {
  expectInside(address, bytes);
  std::memcpy(data, pointer(address), bytes);
}

void FakeGpu::launch(const Launch &launch) {
  ++launches[launch.kernel];
  largestShared = std::max(largestShared, launch.sharedBytes);
  if (launch.kernel == "bench_clock") {
    auto *out = reinterpret_cast<uint64_t *>(launch.parameters[0]);
    out[0] = 2 * launch.parameters[1]; // 2 GHz
    out[1] = launch.parameters[1];
  }
}

std::vector<double> FakeGpu::timeEach(int count,
                                      const std::function<void(int)> &body) {
  for (int i = 0; i < count; ++i)
    body(i);
  return std::vector<double>(count, usPerCall);
}

double FakeGpu::timeAll(int count, const std::function<void(int)> &body) {
  for (int i = 0; i < count; ++i)
    body(i);
  return usPerCall;
}
