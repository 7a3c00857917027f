// SPDX-License-Identifier: Apache-2.0
/// \file
/// Twin of runtime/device/ptx/unit_ring.cuh: the form with bulk copies and
/// mbarriers, whatever the architecture of the text.

namespace mega {

template <int kSlots, int kUnits, int kUnitBytes, int kWarps> struct UnitRing {
  static constexpr int kDepth = kSlots, kBurst = kUnits;
  static constexpr int kSlotBytes = kUnits * kUnitBytes;
  static constexpr int kBarrierBytes = kWarps * kSlots * 8;

  u64 *barriers; ///< this warp's mbarriers
  u8 *base;      ///< this warp's first slot
  u32 issued, taken;

  MEGA_SIM_INLINE void init(u8 *shared) {
    const int warp = threadIdx.x / 32;
    barriers = reinterpret_cast<u64 *>(shared + warp * kSlots * 8);
    base = shared + kBarrierBytes + warp * kSlots * kSlotBytes;
    issued = taken = 0;
    if (threadIdx.x % 32 == 0)
      for (int slot = 0; slot < kSlots; ++slot)
        mega_sim_api->mbarrierInit(barriers + slot, 1);
    MEGA_SIM_SYNC(__syncwarp, "UnitRing::init", 2);
  }

  MEGA_SIM_INLINE int pending() const { return int(issued - taken); }

  MEGA_SIM_INLINE void issue(const u8 *units, u32 bytes) {
    const u32 slot = issued % kSlots;
    if (threadIdx.x % 32 == 0) {
      mega_sim_api->mbarrierArrive(barriers + slot, bytes);
      mega_sim_api->bulkCopy(base + slot * kSlotBytes, units, bytes,
                             barriers + slot);
    }
    ++issued;
  }

  MEGA_SIM_INLINE const u8 *wait() {
    const u32 slot = taken % kSlots;
    mega_sim_api->mbarrierWait(barriers + slot, taken / kSlots % 2);
    return base + slot * kSlotBytes;
  }

  MEGA_SIM_INLINE void release() {
    MEGA_SIM_SYNC(__syncwarp, "UnitRing::release", 0);
    ++taken;
  }
};

MEGA_SIM_INLINE void fenceAsyncProxy() {
  if constexpr (sim::opcodeIn(sim::kTextInstructions, "fenceAsyncProxy", 0) !=
                nullptr)
    mega_sim_api->fenceProxy();
}

} // namespace mega
