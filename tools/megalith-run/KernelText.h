// SPDX-License-Identifier: Apache-2.0
/// \file
/// The kernel text that the simulator runs, and what launching it takes.

#ifndef MEGA_TOOLS_RUN_KERNELTEXT_H
#define MEGA_TOOLS_RUN_KERNELTEXT_H

#include "Description.h"

namespace mega::run {

/// Emitted text and its manifest.
struct KernelText {
  std::shared_ptr<const megalith::Bundle> bundle;
  std::string text;
};

/// Compiles the description for sm_90a. The bundle has no folder and no image.
/// A build without the compiler has an error instead.
llvm::Expected<KernelText> compileText(const Description &description);

} // namespace mega::run

#endif // MEGA_TOOLS_RUN_KERNELTEXT_H
