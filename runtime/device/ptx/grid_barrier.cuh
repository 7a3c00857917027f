// SPDX-License-Identifier: Apache-2.0
/// \file
/// A barrier for all CTAs of a cooperative launch.

namespace mega {

/// One counter. Each arrival adds 1, CTA 0's adds 2^31 - (CTAs - 1): the top
/// bit flips exactly when all have arrived, whatever their number, so the
/// counter needs no reset and survives from launch to launch. Starts at zero; a
/// launch that does not finish leaves it unusable until the workspace is zeroed
/// again.
///
/// In two halves: what a CTA does between them overlaps with the arrival of the
/// others, and may touch only what nobody else writes. A CTA that arrived must
/// wait before it arrives again.
///
/// The release by one thread after a CTA barrier covers the whole CTA's writes
/// (PTX ISA, "Memory Consistency Model", cumulativity), and its acquire before
/// the second CTA barrier covers the whole CTA's reads.
struct GridBarrier {
  u32 *counter; ///< in global memory
  u32 *before;  ///< in shared memory: the counter at this CTA's arrival

  __device__ __forceinline__ GridBarrier(u8 *counter, u8 *before)
      : counter(reinterpret_cast<u32 *>(counter)),
        before(reinterpret_cast<u32 *>(before)) {}

  __device__ __forceinline__ void arrive() const {
    __syncthreads();
    if (threadIdx.x == 0) {
      const u32 last = gridDim.x - 1;
      const u32 step = blockIdx.x == 0 ? 0x80000000u - last : 1u;
      u32 old;
      asm volatile("atom.add.release.gpu.global.u32 %0, [%1], %2;"
                   : "=r"(old)
                   : "l"(counter), "r"(step)
                   : "memory");
      *before = old;
    }
  }

  __device__ __forceinline__ void wait() const {
    if (threadIdx.x == 0) {
      const u32 old = *before;
      u32 now;
      do {
        asm volatile("ld.acquire.gpu.global.u32 %0, [%1];"
                     : "=r"(now)
                     : "l"(counter)
                     : "memory");
      } while (((old ^ now) & 0x80000000u) == 0);
    }
    __syncthreads();
  }
};

} // namespace mega
