// SPDX-License-Identifier: Apache-2.0
/// \file
/// Twin of runtime/device/ptx/place.cuh: what reports say of a thread.

namespace mega {

MEGA_SIM_INLINE void atStage(int phase) { mega_sim_api->atStage(phase); }

MEGA_SIM_INLINE void atTile(int tile) { mega_sim_api->atTile(tile); }

} // namespace mega
