// SPDX-License-Identifier: Apache-2.0

#include "Scheduler.h"

using namespace megalith;
using namespace megalith::sim;

Scheduler::Scheduler(unsigned ctas, unsigned warps)
    : ctas(ctas), warps(warps), laneMasks(ctas * warps), warpMasks(ctas) {}

void Scheduler::start(SimPolicy newPolicy, uint64_t seed) {
  policy = newPolicy;
  random = Random(seed);
  last.reset();
  if (policy == SimPolicy::Starve || policy == SimPolicy::LastArriver)
    last = seed % ctas;
  interruptible = policy == SimPolicy::Random;
  resetInterrupt();
  laneMasks.assign(ctas * warps, ~0u);
  warpMasks.assign(ctas, warps == 32 ? ~0u : (1u << warps) - 1);
  runnableCtas = ctas;
}

void Scheduler::resetInterrupt() { untilInterrupt = 64 + random.next() % 4096; }

void Scheduler::wake(unsigned cta, unsigned warp, uint32_t lanes) {
  if (lanes == 0)
    return;
  runnableCtas += warpMasks[cta] == 0;
  warpMasks[cta] |= 1u << warp;
  laneMasks[cta * warps + warp] |= lanes;
}

void Scheduler::block(ThreadKey thread) {
  uint32_t &lanes = laneMasks[thread.cta() * warps + thread.warp()];
  lanes &= ~(1u << thread.lane());
  if (lanes != 0)
    return;
  uint32_t &mask = warpMasks[thread.cta()];
  mask &= ~(1u << thread.warp());
  runnableCtas -= mask == 0;
}

/// A set bit of a mask that is not zero, by the policy.
unsigned Scheduler::pickBit(uint32_t mask, unsigned after) {
  switch (policy) {
  case SimPolicy::Reverse:
    return 31 - __builtin_clz(mask);
  case SimPolicy::Random:
    after = random.next();
    break;
  default:
    break;
  }
  const unsigned shift = (after + 1) % 32;
  const uint32_t rotated = mask >> shift | mask << ((32 - shift) % 32);
  return (unsigned(__builtin_ctz(rotated)) + shift) % 32;
}

std::optional<unsigned> Scheduler::pickCta(unsigned after) {
  if (runnableCtas == 0)
    return std::nullopt;
  if (policy == SimPolicy::Reverse) {
    for (unsigned cta = ctas; cta-- > 0;)
      if (runnable(cta))
        return cta;
  }
  if (policy == SimPolicy::Random)
    after = random.next() % ctas;
  for (unsigned step = 1; step <= ctas; ++step) {
    unsigned cta = (after + step) % ctas;
    if (runnable(cta) && (cta != last || runnableCtas == 1))
      return cta;
  }
  return std::nullopt;
}

std::optional<ThreadKey> Scheduler::next(ThreadKey current) {
  unsigned cta = current.cta(), warp = current.warp();
  uint32_t lanes = laneMasks[cta * warps + warp];
  const bool giveWay = cta == last && runnableCtas > 1;
  const bool wander =
      policy == SimPolicy::Random && (lanes == 0 || random.next() % 64 == 0);
  if (lanes != 0 && !giveWay && !wander)
    return ThreadKey(cta, warp, pickBit(lanes, current.lane()));
  if (!runnable(cta) || giveWay || (wander && random.next() % 4 == 0)) {
    std::optional<unsigned> other = pickCta(cta);
    if (!other)
      return std::nullopt;
    // A fresh CTA starts at its first warp, not where another one stood.
    if (*other != cta)
      warp = warps - 1;
    cta = *other;
  }
  warp = pickBit(warpMasks[cta], warp);
  lanes = laneMasks[cta * warps + warp];
  return ThreadKey(cta, warp, pickBit(lanes, 31));
}

bool Scheduler::arrivedLast(unsigned cta) {
  if (policy != SimPolicy::LastArriver)
    return false;
  last = cta;
  return true;
}
