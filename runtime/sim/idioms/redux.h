// SPDX-License-Identifier: Apache-2.0
/// \file
/// Twin of runtime/device/ptx/redux.cuh.

namespace mega {

MEGA_SIM_INLINE u32 warpMaxBits(u32 value) {
  return mega_sim_api->reduce(0xffffffffu, value, sim::ReduceOp::Max);
}

MEGA_SIM_INLINE u32 warpMinBits(u32 value) {
  return mega_sim_api->reduce(0xffffffffu, value, sim::ReduceOp::Min);
}

} // namespace mega
