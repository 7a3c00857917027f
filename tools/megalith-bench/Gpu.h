// SPDX-License-Identifier: Apache-2.0
/// \file
/// The device as measurements see it: memory, the measuring kernels, and times
/// between events. Tests stand in another one.

#ifndef MEGALITH_TOOLS_BENCH_GPU_H
#define MEGALITH_TOOLS_BENCH_GPU_H

#include <cstdint>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

namespace megalith::bench {

/// What stops a measurement; the message is for the user.
class BenchError : public std::runtime_error {
public:
  using std::runtime_error::runtime_error;
};

/// What a device says about itself.
struct DeviceFacts {
  std::string name;
  std::string arch; ///< "sm_90a", where the suffix exists
  int sms = 0;
  int sharedBytes = 0; ///< dynamic, at most, a CTA
  int driver = 0;      ///< 1000 * major + 10 * minor
};

/// One launch of a measuring kernel.
struct Launch {
  std::string kernel;
  int grid = 1, threads = 1, sharedBytes = 0;
  /// All parameters are 8 bytes; a struct's members stand one by one.
  std::vector<uint64_t> parameters;
  bool oneStruct = false; ///< the parameters are one struct
  bool cooperative = false;
};

/// One device. Everything is enqueued on the default stream; failures throw
/// BenchError.
class Gpu {
public:
  virtual ~Gpu() = default;

  virtual const DeviceFacts &facts() const = 0;

  /// Device memory, zeroed; freed with the object.
  virtual uint64_t allocate(uint64_t bytes) = 0;
  virtual void free(uint64_t address) = 0;
  virtual void zero(uint64_t address, uint64_t bytes) = 0;
  virtual void upload(uint64_t address, const void *data, uint64_t bytes) = 0;
  virtual void download(void *data, uint64_t address, uint64_t bytes) = 0;

  /// Loads the measuring kernels from a cubin.
  virtual void loadKernels(const std::string &cubin) = 0;
  virtual void launch(const Launch &launch) = 0;

  /// Calls `body` with 0 to count - 1, an event before, between and after the
  /// calls; microseconds between neighbours.
  virtual std::vector<double>
  timeEach(int count, const std::function<void(int)> &body) = 0;

  /// The same with two events; microseconds a call.
  virtual double timeAll(int count, const std::function<void(int)> &body) = 0;
};

/// Device `ordinal` through the CUDA driver, which is opened here.
std::unique_ptr<Gpu> openGpu(int ordinal);

} // namespace megalith::bench

#endif // MEGALITH_TOOLS_BENCH_GPU_H
