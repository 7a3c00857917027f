// SPDX-License-Identifier: Apache-2.0
/// \file
/// A device in host memory whose kernels do nothing, at a price.

#ifndef MEGA_TEST_BENCH_FAKEGPU_H
#define MEGA_TEST_BENCH_FAKEGPU_H

#include "Gpu.h"

#include <map>

/// Every call between events takes `usPerCall` microseconds.
class FakeGpu : public megalith::bench::Gpu {
public:
  ~FakeGpu() override;

  const megalith::bench::DeviceFacts &facts() const override { return own; }
  uint64_t allocate(uint64_t bytes) override;
  void free(uint64_t address) override;
  void zero(uint64_t address, uint64_t bytes) override;
  void upload(uint64_t address, const void *data, uint64_t bytes) override;
  void download(void *data, uint64_t address, uint64_t bytes) override;
  void loadKernels(const std::string &) override {}
  void launch(const megalith::bench::Launch &launch) override;
  std::vector<double> timeEach(int count,
                               const std::function<void(int)> &body) override;
  double timeAll(int count, const std::function<void(int)> &body) override;

  megalith::bench::DeviceFacts own{"Fake GPU", "sm_90a", 4, 232448, 13000};
  double usPerCall = 10;
  /// Launches by kernel, and the largest shared memory asked for.
  std::map<std::string, int> launches;
  int largestShared = 0;
  std::map<uint64_t, uint64_t> allocations;

private:
  void expectInside(uint64_t address, uint64_t bytes);
};

#endif
