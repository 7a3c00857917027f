// SPDX-License-Identifier: Apache-2.0
/// \file
/// Clock stamps of a phase, for profiling. A CTA's clock counts its SM's cycles
/// and cannot be compared with another SM's.

namespace mega {

__device__ __forceinline__ u32 clockLow() {
  u32 ticks;
  asm volatile("mov.u32 %0, %%clock;" : "=r"(ticks) : : "memory");
  return ticks;
}

__device__ __forceinline__ void stampBegin(u8 *stamps, int phase) {
  if (threadIdx.x == 0)
    reinterpret_cast<u32 *>(stamps)[(phase * gridDim.x + blockIdx.x) * 2] =
        clockLow();
}

/// The end is when the CTA's last warp is done.
__device__ __forceinline__ void stampEnd(u8 *stamps, int phase) {
  __syncthreads();
  if (threadIdx.x == 0)
    reinterpret_cast<u32 *>(stamps)[(phase * gridDim.x + blockIdx.x) * 2 + 1] =
        clockLow();
}

} // namespace mega
