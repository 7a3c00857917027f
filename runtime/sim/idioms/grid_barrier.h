// SPDX-License-Identifier: Apache-2.0
/// \file
/// Twin of runtime/device/ptx/grid_barrier.cuh: the same steps, with the memory
/// orders of the text's instructions.

namespace mega {

struct GridBarrier {
  u32 *counter, *before;

  GridBarrier(u8 *counter, u8 *before)
      : counter(reinterpret_cast<u32 *>(counter)),
        before(reinterpret_cast<u32 *>(before)) {}

  MEGA_SIM_INLINE void arrive() const {
    MEGA_SIM_OPCODE(arrival, "GridBarrier::arrive", 0);
    mega_sim_api->atTile(-1);
    MEGA_SIM_SYNC(__syncthreads, "GridBarrier::arrive", 0);
    if (threadIdx.x == 0) {
      const u32 last = gridDim.x - 1;
      const u32 step = blockIdx.x == 0 ? 0x80000000u - last : 1u;
      *before = u32(
          mega_sim_api->atomic(sim::AtomicOp::Add, counter, 4, step, 0,
                               sim::orderOf(arrival), sim::scopeOf(arrival)));
    }
  }

  MEGA_SIM_INLINE void wait() const {
    MEGA_SIM_OPCODE(poll, "GridBarrier::wait", 0);
    mega_sim_api->atTile(-1);
    if (threadIdx.x == 0) {
      const u32 old = *before;
      for (;;) {
        const u32 now =
            u32(mega_sim_api->atomic(sim::AtomicOp::Load, counter, 4, 0, 0,
                                     sim::orderOf(poll), sim::scopeOf(poll)));
        if (((old ^ now) & 0x80000000u) != 0)
          break;
        mega_sim_api->spin(counter, 4, now, "grid barrier",
                           old & 0x80000000u ? sim::Until::BitClear
                                             : sim::Until::BitSet,
                           31);
      }
    }
    MEGA_SIM_SYNC(__syncthreads, "GridBarrier::wait", 1);
  }
};

} // namespace mega
