// SPDX-License-Identifier: Apache-2.0
/// \file
/// Device buffers and driver events, to time launches on the device itself.

#ifndef MEGA_TOOLS_RUN_DEVICECLOCK_H
#define MEGA_TOOLS_RUN_DEVICECLOCK_H

#include "Executor.h"

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

  /// Mean times of `count` calls of `launch` on the default stream, after one
  /// call that is not timed: of the device between two events, and of the host
  /// for the first calls, which do not wait for room in the launch queue.
  llvm::Expected<StepTime> time(int64_t count,
                                llvm::function_ref<llvm::Error()> launch);

private:
  struct Impl;
  explicit DeviceClock(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl;
};

} // namespace mega::run

#endif // MEGA_TOOLS_RUN_DEVICECLOCK_H
