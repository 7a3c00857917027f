// SPDX-License-Identifier: Apache-2.0
/// \file
/// What the engine finds wrong, before it is put in words.

#ifndef MEGA_SIM_ENGINE_FINDING_H
#define MEGA_SIM_ENGINE_FINDING_H

#include "Clock.h"

#include "mega/runtime/Simulator.h"

#include <cstdint>
#include <string>

namespace megalith::sim {

/// Where in the kernel's text and in its phases: the offset of a return address
/// in the compiled kernel, and how many phases the CTA had finished.
struct Place {
  uint32_t code = 0;
  uint32_t phase = 0;
};

/// One side of a finding.
struct AccessInfo {
  ThreadKey thread;
  Place place;
  /// "write", "ld.global.nc read", ...
  const char *what = "";
};

/// A finding.
struct Finding {
  SimReport::Kind kind;
  AccessInfo now;
  bool hasEarlier = false;
  AccessInfo earlier;
  /// Arena offset; only if `hasAddress`.
  bool hasAddress = false;
  uint64_t offset = 0;
  uint32_t bytes = 0;
  /// The order that is missing, or what is wrong, in words.
  std::string message;
};

} // namespace megalith::sim

#endif
