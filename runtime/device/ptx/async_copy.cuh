// SPDX-License-Identifier: Apache-2.0
/// \file
/// Copies from global to shared memory that a thread starts and waits for
/// itself.

namespace mega {

/// Other threads know of a copy through a barrier behind its thread's wait.
/// Groups finish in order (PTX ISA, cp.async).
struct CpAsync {
  /// 16 bytes, through L2 only: other CTAs may have written them. Both
  /// addresses are 16-byte aligned.
  static __device__ __forceinline__ void copy16(void *to, const void *from) {
    const u32 address = u32(__cvta_generic_to_shared(to));
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;"
                 :
                 : "r"(address), "l"(from)
                 : "memory");
  }

  /// Makes a group, maybe an empty one, of the copies since the last.
  static __device__ __forceinline__ void commit() {
    asm volatile("cp.async.commit_group;" : : : "memory");
  }

  /// Waits for all groups but the youngest kPending.
  template <int kPending> static __device__ __forceinline__ void wait() {
    asm volatile("cp.async.wait_group %0;" : : "n"(kPending) : "memory");
  }
};

} // namespace mega
