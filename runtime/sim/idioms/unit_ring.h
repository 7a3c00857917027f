// SPDX-License-Identifier: Apache-2.0
/// \file
/// Twin of runtime/device/ptx/unit_ring.cuh: the form with bulk copies and
/// mbarriers, whatever the architecture of the text.

namespace mega {

template <int kSlots, int kSlotBytes, int kWarps> struct UnitRing {
  static constexpr int kDepth = kSlots;
  static constexpr int kBytes = kWarps * kSlots * (kSlotBytes + 8);

  u64 *barriers; ///< this warp's mbarriers
  u8 *base;      ///< this warp's first slot
  u32 issued, taken;

  inline void init(u8 *shared) {
    const int warp = threadIdx.x / 32;
    base = shared + warp * kSlots * kSlotBytes;
    barriers = reinterpret_cast<u64 *>(shared + kWarps * kSlots * kSlotBytes +
                                       warp * kSlots * 8);
    issued = taken = 0;
    if (threadIdx.x % 32 == 0)
      for (int slot = 0; slot < kSlots; ++slot)
        mega_sim_api->mbarrierInit(barriers + slot, 1);
    __syncwarp();
  }

  inline int pending() const { return int(issued - taken); }

  inline void issue(const u8 *units, u32 bytes) {
    const u32 slot = issued % kSlots;
    if (threadIdx.x % 32 == 0) {
      mega_sim_api->mbarrierArrive(barriers + slot, bytes);
      mega_sim_api->bulkCopy(base + slot * kSlotBytes, units, bytes,
                             barriers + slot);
    }
    ++issued;
  }

  inline const u8 *wait() {
    const u32 slot = taken % kSlots;
    mega_sim_api->mbarrierWait(barriers + slot, taken / kSlots % 2);
    return base + slot * kSlotBytes;
  }

  inline void release() {
    __syncwarp();
    ++taken;
  }
};

} // namespace mega
