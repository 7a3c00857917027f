// SPDX-License-Identifier: Apache-2.0
/// \file
/// Twin of runtime/device/ptx/counter.cuh: the same steps, with the memory orders
/// of the text's instructions.

namespace mega {

struct Counter {
  static MEGA_SIM_INLINE void add(u32 *counter, u32 count) {
    MEGA_SIM_OPCODE(signal, "Counter::add", 0);
    mega_sim_api->atomic(sim::AtomicOp::Add, counter, 4, count, 0,
                         sim::orderOf(signal), sim::scopeOf(signal));
  }
  static MEGA_SIM_INLINE void wait(u32 *counter, u32 target) {
    MEGA_SIM_OPCODE(poll, "Counter::wait", 0);
    if (threadIdx.x == 0)
      for (;;) {
        const u32 now =
            u32(mega_sim_api->atomic(sim::AtomicOp::Load, counter, 4, 0, 0,
                                     sim::orderOf(poll), sim::scopeOf(poll)));
        if (now >= target)
          break;
        mega_sim_api->spin(counter, 4, now, "counter", sim::Until::AtLeast,
                           target);
      }
    if (threadIdx.x == 0)
      mega_sim_api->waited(counter, 4, sim::Until::AtLeast, target);
    MEGA_SIM_SYNC(__syncthreads, "Counter::wait", 1);
  }
  static MEGA_SIM_INLINE void reset(u32 *counter) {
    MEGA_SIM_OPCODE(store, "Counter::reset", 0);
    mega_sim_api->atomic(sim::AtomicOp::Store, counter, 4, 0, 0,
                         sim::orderOf(store), sim::scopeOf(store));
  }
};

} // namespace mega
