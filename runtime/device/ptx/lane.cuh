// SPDX-License-Identifier: Apache-2.0
/// \file
/// A thread's place in its warp.

namespace mega {

/// The calling thread's lane, asked for anew by each call: what is worked out
/// from it takes no registers where it is not used (PTX ISA, %laneid). CTAs are
/// one-dimensional.
__device__ __forceinline__ int laneId() {
  u32 lane;
  asm volatile("mov.u32 %0, %%laneid;" : "=r"(lane));
  return int(lane);
}

} // namespace mega
