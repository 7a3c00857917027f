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

/// Of a thread that is in no stage.
constexpr uint32_t noStage = ~0u;

/// Where in the kernel's text and in its schedule: the offset of a return
/// address in the compiled kernel, and the thread's stage, counted through all
/// phases.
struct Place {
  uint32_t code = 0;
  uint32_t stage = noStage;
};

/// Stages by phase, as the text lists them. Phases that it does not list have
/// one each, behind those that it does.
struct StageTable {
  /// By phase: the number of its first stage; then, of all stages.
  std::vector<uint32_t> firstStages = {0};

  uint32_t firstStage(uint32_t phase) const {
    const uint32_t phases = uint32_t(firstStages.size()) - 1;
    return phase < phases ? firstStages[phase]
                          : firstStages[phases] + (phase - phases);
  }
  uint32_t phaseOf(uint32_t stage) const {
    if (stage >= firstStages.back())
      return uint32_t(firstStages.size()) - 1 + (stage - firstStages.back());
    uint32_t phase = 0;
    while (firstStages[phase + 1] <= stage)
      ++phase;
    return phase;
  }
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
  /// Arena offset; only if `hasAddress`. With a message, that of the variable
  /// which a thread waits for.
  bool hasAddress = false;
  uint64_t offset = 0;
  uint32_t bytes = 0;
  /// The order that is missing, or what is wrong, in words.
  std::string message;
};

} // namespace megalith::sim

#endif
