// SPDX-License-Identifier: Apache-2.0
/// \file
/// Twin of runtime/device/ptx/grid_barrier.cuh: the same steps, with the memory
/// orders of the text's instructions.

namespace mega {

struct GridBarrier {
  static MEGA_SIM_INLINE void arriveAndWait(u32 *counter) {
    MEGA_SIM_OPCODE(arrival, "GridBarrier::arriveAndWait", 0);
    MEGA_SIM_OPCODE(poll, "GridBarrier::arriveAndWait", 1);
    mega_sim_api->atTile(-1);
    MEGA_SIM_SYNC(__syncthreads, "GridBarrier::arriveAndWait", 0);
    if (threadIdx.x == 0) {
      const u32 last = gridDim.x - 1;
      const u32 step = blockIdx.x == 0 ? 0x80000000u - last : 1u;
      const u32 before = u32(
          mega_sim_api->atomic(sim::AtomicOp::Add, counter, 4, step, 0,
                               sim::orderOf(arrival), sim::scopeOf(arrival)));
      for (;;) {
        const u32 now =
            u32(mega_sim_api->atomic(sim::AtomicOp::Load, counter, 4, 0, 0,
                                     sim::orderOf(poll), sim::scopeOf(poll)));
        if (((before ^ now) & 0x80000000u) != 0)
          break;
        mega_sim_api->spin(counter, 4, now, "grid barrier",
                           before & 0x80000000u ? sim::Until::BitClear
                                                : sim::Until::BitSet,
                           31);
      }
    }
    MEGA_SIM_SYNC(__syncthreads, "GridBarrier::arriveAndWait", 2);
  }
};

} // namespace mega
