// SPDX-License-Identifier: Apache-2.0
/// \file
/// Twin of runtime/device/ptx/memory.cuh.

namespace mega {

/// Reads a `type` with the cache operator of the text's `function`. Text
/// without the function does not call it.
#define MEGA_SIM_LOAD(function, type, pointer)                                 \
  MEGA_SIM_INLINE type function(const pointer *address) {                      \
    constexpr const char *opcode =                                             \
        sim::opcodeIn(sim::kTextInstructions, #function, 0);                   \
    return sim::load<type>(address, opcode ? sim::loadKindOf(opcode)           \
                                           : sim::LoadKind::Plain);            \
  }

MEGA_SIM_LOAD(loadConstant16, uint4, void)
MEGA_SIM_LOAD(loadConstant8, uint2, void)
MEGA_SIM_LOAD(loadConstantPacked, uint4, void)
MEGA_SIM_LOAD(loadConstantBf16, u16, u16)
MEGA_SIM_LOAD(loadConstantFloat, float, float)
MEGA_SIM_LOAD(loadShared16, uint4, void)
MEGA_SIM_LOAD(loadSharedFloat4, float4, float)
MEGA_SIM_LOAD(loadSharedFloat, float, float)
MEGA_SIM_LOAD(loadSharedBf16, u16, u16)
MEGA_SIM_LOAD(loadSharedInt, int, int)
#undef MEGA_SIM_LOAD

/// Hints have no meaning here.
MEGA_SIM_INLINE u64 streamPolicy() { return 0; }

} // namespace mega
