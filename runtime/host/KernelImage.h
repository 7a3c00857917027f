// SPDX-License-Identifier: Apache-2.0
//
// Which of a bundle's images a device runs, and what to do if none fits.

#ifndef MEGA_RUNTIME_HOST_KERNELIMAGE_H
#define MEGA_RUNTIME_HOST_KERNELIMAGE_H

#include "mega/runtime/Instance.h"
#include "mega/runtime/Manifest.h"

#include <string>
#include <vector>

namespace megalith {

/// What cuModuleLoadData takes, checked, and where it comes from.
struct KernelImage {
  std::string bytes;
  /// "sm_90a", or "compute_80" for PTX.
  std::string arch;
  ImageOrigin origin = ImageOrigin::Cubin;
  /// For messages.
  std::string label;
};

/// The cubin that runs on a device of compute capability `capability`
/// (10 * major + minor), preferring an exact one and then the newest; null if
/// none does. A cubin runs on the same major version with an equal or greater
/// minor one; an arch with the suffix `a` only on its own capability.
const TargetDesc *chooseTarget(const Manifest &manifest, int capability);

/// The PTX that a device's driver can compile, likewise: PTX runs on its own
/// capability and on any greater one, with the suffix `a` on its own only.
const TargetDesc *choosePtx(const Manifest &manifest, int capability);

/// Reads a cubin or PTX of the bundle. IO_ERROR, BAD_FORMAT.
KernelImage readImage(const Bundle &bundle, const TargetDesc &target,
                      ImageOrigin origin);

/// Compiles the bundle's kernel.cu for a capability with NVRTC, or finds that
/// this was done before. IO_ERROR, BAD_FORMAT, NOT_FOUND (no NVRTC), INTERNAL
/// (NVRTC's errors).
KernelImage compileImage(const Bundle &bundle, int capability);

/// Whether $MEGALITH_JIT allows anything but the bundle's cubins: all but
/// "off" and "0" do.
bool jitAllowed();

} // namespace megalith

#endif
