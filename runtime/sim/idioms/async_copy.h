// SPDX-License-Identifier: Apache-2.0
/// \file
/// Twin of runtime/device/ptx/async_copy.cuh.

namespace mega {

struct CpAsync {
  static MEGA_SIM_INLINE void copy16(void *to, const void *from) {
    mega_sim_api->copyAsync(to, from, 16);
  }
  static MEGA_SIM_INLINE void commit() { mega_sim_api->commitGroup(); }
  template <int kPending> static MEGA_SIM_INLINE void wait() {
    mega_sim_api->waitGroup(kPending);
  }
};

} // namespace mega
