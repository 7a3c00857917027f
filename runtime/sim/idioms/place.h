// SPDX-License-Identifier: Apache-2.0
/// \file
/// Twin of runtime/device/ptx/place.cuh: what reports say of a thread.

namespace mega {

MEGA_SIM_INLINE void atPhase(int phase) { mega_sim_api->atPhase(phase); }

MEGA_SIM_INLINE void atStage(int stage) { mega_sim_api->atStage(stage); }

MEGA_SIM_INLINE void atTile(int tile) { mega_sim_api->atTile(tile); }

} // namespace mega
