// SPDX-License-Identifier: Apache-2.0
/// \file
/// What the engine finds wrong, before it is put in words.

#ifndef MEGA_SIM_ENGINE_FINDING_H
#define MEGA_SIM_ENGINE_FINDING_H

#include "Clock.h"

#include "mega/runtime/Simulator.h"

#include <cstdint>
#include <string>
#include <vector>

namespace megalith::sim {

/// Of a thread that is in no phase.
constexpr uint32_t noPhase = ~0u;

/// Where in the kernel's text and in its schedule: the offset of a return
/// address in the compiled kernel, and the thread's phase.
struct Place {
  uint32_t code = 0;
  uint32_t phase = noPhase;
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
