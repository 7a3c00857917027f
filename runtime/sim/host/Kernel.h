// SPDX-License-Identifier: Apache-2.0
/// \file
/// A compiled kernel, loaded.

#ifndef MEGA_SIM_HOST_KERNEL_H
#define MEGA_SIM_HOST_KERNEL_H

#include "../engine/Machine.h"
#include "KernelText.h"

#include "mega/runtime/Simulator.h"

namespace megalith {

struct SimKernel::Impl {
  Impl(const std::string &text, const SimCompileOptions &options);
  ~Impl();

  sim::KernelText text;
  std::string library; ///< path of the shared object
  void *handle = nullptr;
  sim::Program program = {};
  uint64_t parameterBytes = 0;
};

namespace sim {

/// Puts findings in words, with places in the kernel's text.
std::vector<SimReport> describe(const std::vector<Finding> &findings,
                                const SimKernel::Impl &kernel,
                                const Arena &arena, unsigned ctas);

} // namespace sim
} // namespace megalith

#endif
