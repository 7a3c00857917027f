// SPDX-License-Identifier: Apache-2.0
/// \file
/// Device buffers and driver events, to time launches on the device itself.

#ifndef MEGA_TOOLS_RUN_DEVICECLOCK_H
#define MEGA_TOOLS_RUN_DEVICECLOCK_H

#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/Support/Error.h"

#include <cstdint>
#include <memory>

namespace mega::run {

/// One device's primary context, through the driver opened at run time.
class DeviceClock {
public:
  static llvm::Expected<std::unique_ptr<DeviceClock>> create(int device);
  ~DeviceClock();

  /// Device memory with a copy of `bytes` bytes; freed with the clock.
  llvm::Expected<uint64_t> upload(const void *data, uint64_t bytes);

  /// Mean microseconds of `count` calls of `launch` on the default stream,
  /// between two events, after one call that is not timed.
  llvm::Expected<double> time(int64_t count,
                              llvm::function_ref<llvm::Error()> launch);

private:
  struct Impl;
  explicit DeviceClock(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl;
};

} // namespace mega::run

#endif // MEGA_TOOLS_RUN_DEVICECLOCK_H
