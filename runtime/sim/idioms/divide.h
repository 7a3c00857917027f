// SPDX-License-Identifier: Apache-2.0
/// \file
/// Twin of runtime/device/ptx/divide.cuh.

namespace mega {

MEGA_SIM_INLINE u32 divide(u32 n, u32 d) { return n / d; }

} // namespace mega
