// SPDX-License-Identifier: Apache-2.0
/// \file
/// Twin of runtime/device/ptx/mma.cuh.

namespace mega {

struct MmaM16N8K16Bf16 {
  static MEGA_SIM_INLINE void run(float (&d)[4], u32 a0, u32 a1, u32 a2, u32 a3,
                                  u32 b0, u32 b1) {
    const u32 a[4] = {a0, a1, a2, a3}, b[2] = {b0, b1};
    mega_sim_api->mma16816(d, a, b);
  }
};

struct LdmatrixX4 {
  static MEGA_SIM_INLINE void run(u32 (&d)[4], const void *row) {
    mega_sim_api->ldmatrix(d, row, 4, false);
  }
};

struct LdmatrixX4Trans {
  static MEGA_SIM_INLINE void run(u32 (&d)[4], const void *row) {
    mega_sim_api->ldmatrix(d, row, 4, true);
  }
};

} // namespace mega
