// SPDX-License-Identifier: Apache-2.0
/// \file
/// Receives what `-fsanitize=thread` makes of every load and store, in place of
/// the sanitizer's own runtime, and hands it to the engine. Everything outside
/// the simulated memory (stacks, tables) is dropped here.

#ifndef MEGA_SIM_PRELUDE_INSTRUMENT_H
#define MEGA_SIM_PRELUDE_INSTRUMENT_H

#include "cuda.h"

#define MEGA_SIM_HOOK                                                          \
  extern "C" __attribute__((no_sanitize_thread, noinline, used))

namespace mega {
namespace sim {
__attribute__((no_sanitize_thread, always_inline)) inline bool
isWatched(const void *address) {
  return (unsigned long long)(address)-mega_sim_registers.arenaBase <
         mega_sim_registers.arenaSize;
}
} // namespace sim
} // namespace mega

#define MEGA_SIM_HOOKS_OF(bytes, prefix)                                       \
  MEGA_SIM_HOOK void __tsan_##prefix##read##bytes(const void *address) {       \
    if (mega::sim::isWatched(address))                                         \
      mega_sim_api->readAt(address, bytes, __builtin_return_address(0));       \
  }                                                                            \
  MEGA_SIM_HOOK void __tsan_##prefix##write##bytes(void *address) {            \
    if (mega::sim::isWatched(address))                                         \
      mega_sim_api->writeAt(address, bytes, __builtin_return_address(0));      \
  }

MEGA_SIM_HOOKS_OF(1, )
MEGA_SIM_HOOKS_OF(2, )
MEGA_SIM_HOOKS_OF(4, )
MEGA_SIM_HOOKS_OF(8, )
MEGA_SIM_HOOKS_OF(16, )
MEGA_SIM_HOOKS_OF(2, unaligned_)
MEGA_SIM_HOOKS_OF(4, unaligned_)
MEGA_SIM_HOOKS_OF(8, unaligned_)
MEGA_SIM_HOOKS_OF(16, unaligned_)
MEGA_SIM_HOOKS_OF(1, volatile_)
MEGA_SIM_HOOKS_OF(2, volatile_)
MEGA_SIM_HOOKS_OF(4, volatile_)
MEGA_SIM_HOOKS_OF(8, volatile_)
MEGA_SIM_HOOKS_OF(16, volatile_)

MEGA_SIM_HOOK void __tsan_read_range(const void *address, unsigned long bytes) {
  if (mega::sim::isWatched(address))
    mega_sim_api->readAt(address, unsigned(bytes), __builtin_return_address(0));
}
MEGA_SIM_HOOK void __tsan_write_range(void *address, unsigned long bytes) {
  if (mega::sim::isWatched(address))
    mega_sim_api->writeAt(address, unsigned(bytes),
                          __builtin_return_address(0));
}
MEGA_SIM_HOOK void __tsan_init() {}
MEGA_SIM_HOOK void __tsan_func_entry(const void *) {}
MEGA_SIM_HOOK void __tsan_func_exit() {}

#endif // MEGA_SIM_PRELUDE_INSTRUMENT_H
