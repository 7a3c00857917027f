// SPDX-License-Identifier: Apache-2.0
/// \file
/// Counters as a kernel may use them instead of grid barriers.

namespace mega {

struct Counter {
  /// Adds `count` once all of the CTA's accesses are done.
  static __device__ __forceinline__ void signal(u32 *counter, u32 count) {
    __syncthreads();
    if (threadIdx.x == 0)
      asm volatile("red.release.gpu.global.add.u32 [%0], %1;"
                   :
                   : "l"(counter), "r"(count)
                   : "memory");
  }
  /// Waits until the counter is `target` or more; for all of the CTA.
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
  /// Makes it 0; one thread, after all that signal or wait.
  static __device__ __forceinline__ void reset(u32 *counter) {
    asm volatile("st.relaxed.gpu.global.u32 [%0], %1;"
                 :
                 : "l"(counter), "r"(0)
                 : "memory");
  }
};

} // namespace mega
