// SPDX-License-Identifier: Apache-2.0
/// \file
/// A warp's private ring of weight units in shared memory, filled by
/// asynchronous copies that the warp itself starts. What is in flight is
/// bounded by the ring, kSlots bursts a warp, because more only makes every
/// other access slower. A slot takes a burst of units that lie together, since
/// a copy costs about as much to start as a unit costs to use.

namespace mega {

/// The mbarriers come first and stay; between two matrix-vector products the
/// ring is empty, and a phase that has none may use the bytes behind them
/// (fenceAsyncProxy afterwards).
///
/// kUnits units of at most kUnitBytes, a multiple of 16, fit a slot; at most
/// four slots.
template <int kSlots, int kUnits, int kUnitBytes, int kWarps> struct UnitRing {
  static constexpr int kDepth = kSlots, kBurst = kUnits;
  static constexpr int kSlotBytes = kUnits * kUnitBytes;
  static constexpr int kBarrierBytes = kWarps * kSlots * 8;

  u32 slots;    ///< shared address of this warp's first slot
  u32 barriers; ///< of its mbarriers
  u8 *base;     ///< generic address of `slots`
  u32 issued, taken;

  /// Makes the mbarriers; called by every thread once, before a CTA barrier.
  /// `shared` is 16-byte aligned.
  __device__ __forceinline__ void init(u8 *shared) {
    attach(shared, 0);
#if __CUDA_ARCH__ >= 900
    if (threadIdx.x % 32 == 0) {
      for (int slot = 0; slot < kSlots; ++slot)
        asm volatile("mbarrier.init.shared.b64 [%0], 1;"
                     :
                     : "r"(barriers + slot * 8)
                     : "memory");
      asm volatile("fence.mbarrier_init.release.cluster;" : : : "memory");
    }
    __syncwarp();
#endif
  }

  /// Takes up the ring at `shared`, which is empty after `bursts` bursts.
  __device__ __forceinline__ void attach(u8 *shared, u32 bursts) {
    const int warp = threadIdx.x / 32;
    barriers = u32(__cvta_generic_to_shared(shared + warp * kSlots * 8));
    base = shared + kBarrierBytes + warp * kSlots * kSlotBytes;
    slots = u32(__cvta_generic_to_shared(base));
    issued = taken = bursts;
  }

  /// Bursts whose copy was started and that were not taken yet.
  __device__ __forceinline__ int pending() const { return int(issued - taken); }

  /// Starts the copy of `bytes` (a multiple of 16, at most a slot) from
  /// `units`; the ring must not be full. Whole warp.
  __device__ __forceinline__ void issue(const u8 *units, u32 bytes) {
    const u32 slot = issued % kSlots;
    const u32 destination = slots + slot * kSlotBytes;
#if __CUDA_ARCH__ >= 900
    // PTX ISA, cp.async.bulk: the mbarrier counts the bytes that arrive. By one
    // lane, which elect.sync lets the compiler know: it needs no loop over
    // lanes.
    asm volatile("{\n\t.reg .pred p;\n\t"
                 "elect.sync _|p, 0xffffffff;\n\t"
                 "@p mbarrier.arrive.expect_tx.shared.b64 _, [%0], %1;\n\t"
                 "@p cp.async.bulk.shared::cluster.global.mbarrier::"
                 "complete_tx::bytes.L2::cache_hint [%2], [%3], %1, [%0], "
                 "%4;\n\t}"
                 :
                 : "r"(barriers + slot * 8), "r"(bytes), "r"(destination),
                   "l"(units), "l"(streamPolicy())
                 : "memory");
#else
    for (u32 at = threadIdx.x % 32 * 16; at < bytes; at += 32 * 16)
      asm volatile("cp.async.cg.shared.global [%0], [%1], 16;"
                   :
                   : "r"(destination + at), "l"(units + at)
                   : "memory");
    asm volatile("cp.async.commit_group;" : : : "memory");
#endif
    ++issued;
  }

  /// Waits for the oldest burst and gives its address. Whole warp.
  __device__ __forceinline__ const u8 *wait() {
    const u32 slot = taken % kSlots;
#if __CUDA_ARCH__ >= 900
    const u32 parity = taken / kSlots % 2;
    asm volatile("{\n\t.reg .pred p;\n\t"
                 "again:\n\t"
                 "mbarrier.try_wait.parity.shared.b64 p, [%0], %1;\n\t"
                 "@!p bra again;\n\t}"
                 :
                 : "r"(barriers + slot * 8), "r"(parity)
                 : "memory");
#else
    // Groups finish in order: all but the younger ones must be done.
    switch (issued - taken) {
    case 1:
      asm volatile("cp.async.wait_group 0;" : : : "memory");
      break;
    case 2:
      asm volatile("cp.async.wait_group 1;" : : : "memory");
      break;
    case 3:
      asm volatile("cp.async.wait_group 2;" : : : "memory");
      break;
    default:
      asm volatile("cp.async.wait_group 3;" : : : "memory");
      break;
    }
    __syncwarp();
#endif
    return base + slot * kSlotBytes;
  }

  /// Gives the oldest burst's slot back: no lane reads it any more. Whole warp.
  __device__ __forceinline__ void release() {
    __syncwarp();
    ++taken;
  }
};

/// Orders this thread's ordinary accesses to shared memory before asynchronous
/// copies into it that follow a CTA barrier (PTX ISA, "Async proxy").
__device__ __forceinline__ void fenceAsyncProxy() {
#if __CUDA_ARCH__ >= 900
  asm volatile("fence.proxy.async.shared::cta;" : : : "memory");
#endif
}

} // namespace mega
