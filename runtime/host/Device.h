// SPDX-License-Identifier: Apache-2.0
//
// Owning objects over the driver API. Constructors and operations throw Error;
// destructors do not report.

#ifndef MEGA_RUNTIME_HOST_DEVICE_H
#define MEGA_RUNTIME_HOST_DEVICE_H

#include "Driver.h"
#include "KernelImage.h"
#include "mega/runtime/Manifest.h"

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>

namespace megalith {

/// A CUDA device and its primary context, retained.
class Device {
public:
  /// NO_DRIVER, NO_KERNEL (no such device), DRIVER_ERROR.
  explicit Device(int ordinal);
  ~Device();
  Device(const Device &) = delete;
  Device &operator=(const Device &) = delete;

  const Driver &driver;
  /// The number the caller gave.
  const int ordinal;
  CUdevice handle = 0;
  CUcontext context = nullptr;
  std::string name;
  /// 10 * major + minor of the compute capability.
  int capability = 0;

  /// A device attribute.
  int attribute(int which) const;
  /// Waits until nothing of the context runs; false if that takes longer than
  /// `limit`. Zero is no limit. The context must be current.
  bool waitIdle(std::chrono::milliseconds limit) const;
  /// Throws unless `result` is success.
  void check(CUresult result, const char *call) const {
    if (result != CUDA_SUCCESS)
      checkDriver(driver, result, call);
  }
};

/// Makes a device's context current while it lives.
class CurrentContext {
public:
  explicit CurrentContext(const Device &device) : device(device) {
    device.check(device.driver.cuCtxPushCurrent(device.context),
                 "cuCtxPushCurrent");
  }
  ~CurrentContext() {
    CUcontext popped;
    device.driver.cuCtxPopCurrent(&popped);
  }
  CurrentContext(const CurrentContext &) = delete;
  CurrentContext &operator=(const CurrentContext &) = delete;

private:
  const Device &device;
};

/// Device memory, 256-byte aligned, freed with the object. The context must be
/// current when it is made.
class DeviceBuffer {
public:
  /// Owns nothing.
  DeviceBuffer() = default;
  /// `bytes` zeroed bytes; at least one is allocated, so that there is an
  /// address. `what` names them in errors. `device` must outlive the buffer.
  DeviceBuffer(const Device &device, uint64_t bytes, const std::string &what);
  ~DeviceBuffer() { release(); }
  DeviceBuffer(DeviceBuffer &&other) noexcept { swap(other); }
  DeviceBuffer &operator=(DeviceBuffer &&other) noexcept {
    swap(other);
    return *this;
  }

  /// 0 if nothing is owned.
  CUdeviceptr address() const { return start; }
  /// Frees now.
  void release() noexcept;
  /// Gives the memory up without freeing it: something may still use it.
  void abandon() noexcept { start = 0; }

private:
  void swap(DeviceBuffer &other) noexcept {
    std::swap(device, other.device);
    std::swap(start, other.start);
  }
  const Device *device = nullptr;
  CUdeviceptr start = 0;
};

/// A loaded image and its entry point. The context must be current when it is
/// made.
class Kernel {
public:
  /// Loads the image that fits the device: the bundle's cubin, else its PTX,
  /// else what NVRTC makes of its kernel.cu. Opts into its dynamic shared
  /// memory, and checks that a grid of one CTA an SM is co-resident.
  /// NO_KERNEL, IO_ERROR, BAD_FORMAT, RESOURCE_LIMIT, DRIVER_ERROR.
  Kernel(const Device &device, const Bundle &bundle);
  ~Kernel();
  Kernel(const Kernel &) = delete;
  Kernel &operator=(const Kernel &) = delete;

  CUfunction function = nullptr;
  /// The image's arch: "sm_90a", or "compute_80".
  std::string arch;
  ImageOrigin origin = ImageOrigin::Cubin;
  /// CTAs of a launch: the SMs, at most the manifest's max_ctas.
  int grid = 0;

private:
  void loadFitting(const Bundle &bundle);
  void load(const KernelImage &image);
  void prepare(const Manifest &manifest);
  const Device &device;
  /// The image's, for messages.
  std::string label;
  CUmodule module = nullptr;
};

} // namespace megalith

#endif
