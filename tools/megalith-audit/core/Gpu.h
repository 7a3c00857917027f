// SPDX-License-Identifier: Apache-2.0
/// \file
/// Streams, events and buffers of one device, by the driver opened at run time.
/// Failures are megalith::Error.

#ifndef MEGA_TOOLS_AUDIT_GPU_H
#define MEGA_TOOLS_AUDIT_GPU_H

#include "Device.h"

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

namespace mega::audit {

class Gpu {
public:
  explicit Gpu(int ordinal);
  ~Gpu();
  Gpu(const Gpu &) = delete;
  Gpu &operator=(const Gpu &) = delete;

  /// Device memory with a copy of the bytes, or of zeros; lives as long as
  /// this.
  uint64_t upload(const void *data, uint64_t bytes);
  uint64_t allocate(uint64_t bytes);
  void write(uint64_t address, const void *data, uint64_t bytes);
  std::vector<uint8_t> download(uint64_t address, uint64_t bytes);

  /// A stream that does not wait for the default one; lives as long as this.
  void *stream();

  /// Mean microseconds between two events around `count` calls of `launch`,
  /// which enqueues on `stream`; one more call before is not counted.
  double time(void *stream, int count, const std::function<void()> &launch);

  /// Bytes a second that the memory's pins can move; 0 if the driver does not
  /// say.
  double peakBandwidth() const;
  uint64_t cacheBytes() const;

private:
  struct Events;
  megalith::Device device;
  std::vector<megalith::DeviceBuffer> buffers;
  std::vector<megalith::CUstream> streams;
};

} // namespace mega::audit

#endif // MEGA_TOOLS_AUDIT_GPU_H
