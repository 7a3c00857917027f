// SPDX-License-Identifier: Apache-2.0
/// \file
/// Which thread runs next. Knows who can run and the policy, nothing else.

#ifndef MEGA_SIM_ENGINE_SCHEDULER_H
#define MEGA_SIM_ENGINE_SCHEDULER_H

#include "Clock.h"

#include "mega/runtime/Simulator.h"

#include <optional>
#include <vector>

namespace megalith::sim {

/// xorshift64*: small, fast, the same everywhere.
class Random {
public:
  explicit Random(uint64_t seed) : state((seed + 1) * 0x9e3779b97f4a7c15 | 1) {}
  uint32_t next() {
    state ^= state >> 12;
    state ^= state << 25;
    state ^= state >> 27;
    return uint32_t((state * 0x2545f4914f6cdd1d) >> 32);
  }

private:
  uint64_t state;
};

/// Sets of runnable lanes, warps and CTAs as bits.
class Scheduler {
public:
  Scheduler(unsigned ctas, unsigned warps);

  /// All threads can run.
  void start(SimPolicy policy, uint64_t seed);

  void wake(unsigned cta, unsigned warp, uint32_t lanes);
  void block(ThreadKey thread);

  /// Who runs after `current`, or nobody. A thread keeps its warp company, and
  /// a warp its CTA, for as long as they can run.
  std::optional<ThreadKey> next(ThreadKey current);

  /// `cta` has let others go on by arriving last. True if it should give way.
  bool arrivedLast(unsigned cta);

  /// True now and then if the policy interrupts threads between accesses.
  bool interrupts() { return interruptible && --untilInterrupt == 0; }
  void resetInterrupt();

private:
  unsigned pickBit(uint32_t mask, unsigned after);
  std::optional<unsigned> pickCta(unsigned after);
  bool runnable(unsigned cta) const { return warpMasks[cta] != 0; }

  unsigned ctas, warps;
  std::vector<uint32_t> laneMasks; ///< by CTA and warp
  std::vector<uint32_t> warpMasks; ///< by CTA
  unsigned runnableCtas = 0;
  SimPolicy policy = SimPolicy::RoundRobin;
  Random random{0};
  /// The CTA that runs only if no other can.
  std::optional<unsigned> last;
  bool interruptible = false;
  uint32_t untilInterrupt = 0;
};

} // namespace megalith::sim

#endif
