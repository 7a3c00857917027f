// SPDX-License-Identifier: Apache-2.0
/// \file
/// Global memory accesses, by what the compiler knows about the data.
///
///   loadConstant*  immutable for the whole launch and read once: no L1, first
///                  out of L2 (PTX ISA, ld.global.nc with cache hints)
///   loadShared*    written by other CTAs earlier in the launch: L2 only, since
///                  an L1 line may be stale (PTX ISA, ld.global.cg)

namespace mega {

/// L2 policy of data that a step reads once: the first to go, so that it does
/// not push out what the step reads again (activations, state, instructions).
__device__ __forceinline__ u64 streamPolicy() {
  u64 policy;
  asm("createpolicy.fractional.L2::evict_first.b64 %0, 1.0;" : "=l"(policy));
  return policy;
}

/// 16 bytes of an immutable stream; `address` is 16-byte aligned.
__device__ __forceinline__ uint4 loadConstant16(const void *address) {
  uint4 v;
  asm volatile("ld.global.nc.L1::no_allocate.L2::cache_hint.v4.u32 "
               "{%0, %1, %2, %3}, [%4], %5;"
               : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
               : "l"(address), "l"(streamPolicy()));
  return v;
}

/// 8 bytes of an immutable stream; `address` is 8-byte aligned.
__device__ __forceinline__ uint2 loadConstant8(const void *address) {
  uint2 v;
  asm volatile("ld.global.nc.L1::no_allocate.L2::cache_hint.v2.u32 {%0, %1}, "
               "[%2], %3;"
               : "=r"(v.x), "=r"(v.y)
               : "l"(address), "l"(streamPolicy()));
  return v;
}

/// 16 bytes that never change and that every CTA reads.
__device__ __forceinline__ uint4 loadConstantPacked(const void *address) {
  uint4 v;
  asm volatile("ld.global.nc.v4.u32 {%0, %1, %2, %3}, [%4];"
               : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
               : "l"(address));
  return v;
}

/// One immutable element, which several CTAs read.
__device__ __forceinline__ u16 loadConstantBf16(const u16 *address) {
  u16 v;
  asm volatile("ld.global.nc.u16 %0, [%1];" : "=h"(v) : "l"(address));
  return v;
}
__device__ __forceinline__ float loadConstantFloat(const float *address) {
  float v;
  asm volatile("ld.global.nc.f32 %0, [%1];" : "=f"(v) : "l"(address));
  return v;
}

__device__ __forceinline__ uint4 loadShared16(const void *address) {
  uint4 v;
  asm volatile("ld.global.cg.v4.u32 {%0, %1, %2, %3}, [%4];"
               : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
               : "l"(address)
               : "memory");
  return v;
}
__device__ __forceinline__ float4 loadSharedFloat4(const float *address) {
  float4 v;
  asm volatile("ld.global.cg.v4.f32 {%0, %1, %2, %3}, [%4];"
               : "=f"(v.x), "=f"(v.y), "=f"(v.z), "=f"(v.w)
               : "l"(address)
               : "memory");
  return v;
}
__device__ __forceinline__ float loadSharedFloat(const float *address) {
  float v;
  asm volatile("ld.global.cg.f32 %0, [%1];"
               : "=f"(v)
               : "l"(address)
               : "memory");
  return v;
}
__device__ __forceinline__ u16 loadSharedBf16(const u16 *address) {
  u16 v;
  asm volatile("ld.global.cg.u16 %0, [%1];"
               : "=h"(v)
               : "l"(address)
               : "memory");
  return v;
}
__device__ __forceinline__ int loadSharedInt(const int *address) {
  int v;
  asm volatile("ld.global.cg.s32 %0, [%1];"
               : "=r"(v)
               : "l"(address)
               : "memory");
  return v;
}

} // namespace mega
