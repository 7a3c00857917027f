// SPDX-License-Identifier: Apache-2.0
/// \file
/// Warp-wide integer reductions in one instruction (PTX ISA, redux.sync).

namespace mega {

__device__ __forceinline__ u32 warpMaxBits(u32 value) {
  u32 result;
  asm volatile("redux.sync.max.u32 %0, %1, 0xffffffff;"
               : "=r"(result)
               : "r"(value));
  return result;
}

__device__ __forceinline__ u32 warpMinBits(u32 value) {
  u32 result;
  asm volatile("redux.sync.min.u32 %0, %1, 0xffffffff;"
               : "=r"(result)
               : "r"(value));
  return result;
}

} // namespace mega
