// SPDX-License-Identifier: Apache-2.0
/// \file
/// Twin of runtime/device/ptx/lane.cuh.

namespace mega {

MEGA_SIM_INLINE int laneId() { return int(threadIdx.x % 32); }

} // namespace mega
