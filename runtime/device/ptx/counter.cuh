// SPDX-License-Identifier: Apache-2.0
/// \file
/// Counters in global memory that order tiles without a barrier for all.

namespace mega {

/// A counter is 0 before and after each step. Whoever waits holds up nobody but
/// its own CTA, and all CTAs are co-resident, so a wait for tiles that stand
/// earlier in every CTA's list ends.
struct Counter {
  /// Adds `count`, for all that the CTA did before its last CTA barrier (PTX
  /// ISA, "Memory Consistency Model", cumulativity). One thread.
  static __device__ __forceinline__ void add(u32 *counter, u32 count) {
    asm volatile("red.release.gpu.global.add.u32 [%0], %1;"
                 :
                 : "l"(counter), "r"(count)
                 : "memory");
  }
  /// Waits until the counter is `target` or more; the whole CTA.
  static __device__ __forceinline__ void wait(u32 *counter, u32 target) {
    if (threadIdx.x == 0) {
      u32 now;
      do {
        asm volatile("ld.acquire.gpu.global.u32 %0, [%1];"
                     : "=r"(now)
                     : "l"(counter)
                     : "memory");
      } while (now < target);
    }
    __syncthreads();
  }
  /// Makes it 0; one thread, a grid barrier away from whoever adds or waits.
  static __device__ __forceinline__ void reset(u32 *counter) {
    asm volatile("st.relaxed.gpu.global.u32 [%0], %1;"
                 :
                 : "l"(counter), "r"(0)
                 : "memory");
  }
};

} // namespace mega
