// SPDX-License-Identifier: Apache-2.0
/// \file
/// What the engine looks up in a compiled kernel; included after its text.

#ifndef MEGA_SIM_PRELUDE_EXPORTS_H
#define MEGA_SIM_PRELUDE_EXPORTS_H

#include "cuda.h"
#ifdef MEGA_SIM_RACES
#include "instrument.h"
#endif

#define MEGA_SIM_EXPORT extern "C" __attribute__((visibility("default")))

extern "C" {
const mega::sim::Api *mega_sim_api;
mega::sim::Registers mega_sim_registers;
}

#endif // MEGA_SIM_PRELUDE_EXPORTS_H
