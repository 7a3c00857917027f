// SPDX-License-Identifier: Apache-2.0
/// \file
/// Twin of runtime/device/ptx/unit_ring.cuh, in both forms: bulk copies and
/// mbarriers from sm_90 on, a thread's own copies in groups before.

namespace mega {

template <int kSlots, int kUnits, int kUnitBytes, int kWarps> struct UnitRing {
  static constexpr int kDepth = kSlots, kBurst = kUnits;
  static constexpr int kSlotBytes = kUnits * kUnitBytes;
  static constexpr int kBarrierBytes = kWarps * kSlots * 8;

  u64 *barriers; ///< this warp's mbarriers
  u8 *base;      ///< this warp's first slot
  u32 issued, taken;

  MEGA_SIM_INLINE void init(u8 *shared) {
    attach(shared, 0);
#if __CUDA_ARCH__ >= 900
    if (threadIdx.x % 32 == 0) {
      for (int slot = 0; slot < kSlots; ++slot)
        mega_sim_api->mbarrierInit(barriers + slot, 1);
      MEGA_SIM_OPCODE(fence, "UnitRing::init", 1);
      if (sim::hasPart(fence, "mbarrier_init"))
        mega_sim_api->fenceMbarrierInit();
    }
    MEGA_SIM_SYNC(__syncwarp, "UnitRing::init", 2);
#endif
  }

  MEGA_SIM_INLINE void attach(u8 *shared, u32 bursts) {
    const int warp = threadIdx.x / 32;
    barriers = reinterpret_cast<u64 *>(shared + warp * kSlots * 8);
    base = shared + kBarrierBytes + warp * kSlots * kSlotBytes;
    issued = taken = bursts;
  }

  MEGA_SIM_INLINE int pending() const { return int(issued - taken); }

  MEGA_SIM_INLINE void issue(const u8 *units, u32 bytes) {
    u8 *const slot = base + issued % kSlots * kSlotBytes;
    const u32 lane = threadIdx.x % 32;
#if __CUDA_ARCH__ >= 900
    if (lane == 0) {
      u64 *const barrier = barriers + issued % kSlots;
      mega_sim_api->mbarrierArrive(barrier, bytes);
      mega_sim_api->bulkCopy(slot, units, bytes, barrier);
    }
#else
    for (u32 at = lane * 16; at < bytes; at += 32 * 16)
      mega_sim_api->copyAsync(slot + at, units + at, 16);
    mega_sim_api->commitGroup();
#endif
    ++issued;
  }

  MEGA_SIM_INLINE const u8 *wait() {
    const u32 slot = taken % kSlots;
#if __CUDA_ARCH__ >= 900
    mega_sim_api->mbarrierWait(barriers + slot, taken / kSlots % 2);
#else
    const u32 younger = issued - taken - 1;
    mega_sim_api->waitGroup(younger < 3 ? younger : 3);
    MEGA_SIM_SYNC(__syncwarp, "UnitRing::wait", 5);
#endif
    return base + slot * kSlotBytes;
  }

  MEGA_SIM_INLINE void release() {
    MEGA_SIM_SYNC(__syncwarp, "UnitRing::release", 0);
    ++taken;
  }
};

MEGA_SIM_INLINE void fenceAsyncProxy() {
#if __CUDA_ARCH__ >= 900
  if constexpr (sim::opcodeIn(sim::kTextInstructions, "fenceAsyncProxy", 0) !=
                nullptr)
    mega_sim_api->fenceProxy();
#endif
}

} // namespace mega
