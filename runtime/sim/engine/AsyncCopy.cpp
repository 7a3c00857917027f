// SPDX-License-Identifier: Apache-2.0
/// \file
/// Asynchronous copies into shared memory: bulk copies with the mbarriers that
/// count them, and a thread's own, in groups.
///
/// A copy's target holds poison from its start until it lands, and it lands
/// when somebody waits for it (under the policy `reverse`: at once), so that a
/// read that is too early sees poison, and one that is too late is not hidden.

#include "Machine.h"

#include "Error.h"

#include <algorithm>
#include <cstring>

using namespace megalith;
using namespace megalith::sim;

Machine::Mbarrier &Machine::mbarrier(const void *address, AtomicOp op,
                                     const void *code) {
  const uint64_t offset = offsetOf(address);
  auto at = mbarrierAt.find(offset);
  if (at == mbarrierAt.end()) {
    report(SimReport::Kind::Poison, code,
           fmt::format("an mbarrier at {} is used before it is initialised",
                       offset < arena.size() ? arena.describe(offset)
                                             : "no buffer"));
    stop();
  }
  Finding finding;
  if (shadow &&
      !(op == AtomicOp::Load ? shadow->read(offset, 8, AccessKind::Atomic,
                                            accessor(code), finding)
                             : shadow->write(offset, 8, AccessKind::Atomic,
                                             accessor(code), finding)))
    report(std::move(finding));
  return at->second;
}

void Machine::mbarrierInit(void *barrier, uint32_t count, const void *code) {
  mbarrierAt.erase(offsetOf(barrier));
  if (shadow)
    write(barrier, 8, code);
  Mbarrier &at = mbarrierAt[offsetOf(barrier)];
  at = Mbarrier();
  at.count = at.pending = count;
  current->unseenBarriers.push_back(offsetOf(barrier));
  const uint64_t window =
      arena.region(sharedRegions[current->key.cta()]).offset;
  mbarrierEnd = std::max(mbarrierEnd, offsetOf(barrier) - window + 8);
}

void Machine::fenceMbarrierInit() {
  for (uint64_t offset : std::exchange(current->unseenBarriers, {}))
    if (auto at = mbarrierAt.find(offset); at != mbarrierAt.end())
      at->second.seenByCopies = true;
}

void Machine::checkMbarriers(uint64_t offset, uint32_t bytes,
                             const void *code) {
  const uint64_t window =
      arena.region(sharedRegions[current->key.cta()]).offset;
  if (offset - window >= mbarrierEnd)
    return;
  for (uint64_t at = offset / 8 * 8; at < offset + bytes; at += 8)
    if (mbarrierAt.count(at))
      report(
          SimReport::Kind::OutOfBounds, code,
          fmt::format("an ordinary write of {} bytes over the mbarrier at {}",
                      bytes, arena.describe(at)));
}

void Machine::completeIfDone(Mbarrier &at) {
  if (at.pending != 0 || at.bytes != 0)
    return;
  ++at.phase;
  at.pending = at.count;
  at.completed = std::exchange(at.arriving, Clock());
  at.completedVisible = std::exchange(at.arrivingVisible, Clock());
  for (uint32_t index : std::exchange(at.waiters, {}))
    wake(threads[index]);
}

void Machine::land(Mbarrier &at) {
  for (const Copy &copy : std::exchange(at.copies, {})) {
    std::memcpy(copy.to, copy.from, copy.bytes);
    at.bytes -= copy.bytes;
    if (shadow) {
      if (!at.arriving)
        at.arriving = Clock(2 * shape.ctas);
      at.arriving.addExtra(copy.agent, copy.time);
    }
  }
  completeIfDone(at);
}

void Machine::mbarrierArrive(void *barrier, uint32_t bytes, const void *code) {
  Mbarrier &at = mbarrier(barrier, AtomicOp::Add, code);
  if (at.pending == 0) {
    report(SimReport::Kind::Divergence, code,
           fmt::format("the mbarrier at {} gets more than the {} arrivals of "
                       "a phase",
                       arena.describe(offsetOf(barrier)), at.count));
    stop();
  }
  if (shadow) {
    at.arriving.join(current->known);
    at.arrivingVisible.join(current->visible);
    at.arriving.addExtra(current->key, current->time);
    ++current->time;
  }
  --at.pending;
  at.bytes += bytes;
  completeIfDone(at);
}

void Machine::mbarrierWait(void *barrier, uint32_t parity, const void *code) {
  Mbarrier &at = mbarrier(barrier, AtomicOp::Load, code);
  while ((at.phase & 1) == parity) {
    if (!at.copies.empty()) {
      land(at);
      continue;
    }
    current->waitOffset = offsetOf(barrier);
    at.waiters.push_back(uint32_t(current - threads.data()));
    block(State::Mbarrier, code);
  }
  if (shadow && at.completed) {
    current->known.join(at.completed);
    current->visible.join(at.completedVisible);
  }
}

Machine::Copy Machine::startCopy(void *to, const void *from, uint32_t bytes,
                                 const Clock *sees, const char *name,
                                 const void *code) {
  const uint64_t target = offsetOf(to), source = offsetOf(from);
  const Region *region = arena.find(target), *origin = arena.find(source);
  auto fits = [bytes](const Region *region, uint64_t offset) {
    return region && offset + bytes <= region->offset + region->bytes;
  };
  if (!fits(region, target) || region->kind != RegionKind::Shared ||
      !fits(origin, source) || bytes % 16 != 0 || target % 16 != 0 ||
      source % 16 != 0) {
    report(SimReport::Kind::OutOfBounds, code,
           fmt::format("{} of {} bytes from {} to {}, expected multiples of 16 "
                       "inside of global and shared memory",
                       name, bytes, arena.describe(source),
                       arena.describe(target)));
    stop();
  }
  const Copy copy = {static_cast<uint8_t *>(to),
                     static_cast<const uint8_t *>(from),
                     bytes,
                     agentOf(current->key),
                     ++current->copies,
                     code};
  if (shadow) {
    Clock past = current->known;
    past.addExtra(current->key, current->time);
    Finding finding;
    const Place place = {codeOf(code), current->stage};
    const Accessor by = {copy.agent, copy.time,           past,
                         place,      sees ? sees : &past, unsigned(shape.ctas)};
    if (!sees)
      read(from, bytes, LoadKind::Plain, code);
    else if (source >= arena.constantBytes() &&
             !shadow->read(source, bytes, AccessKind::Plain, by, finding))
      report(std::move(finding));
    if (!shadow->write(target, bytes, AccessKind::Plain, by, finding))
      report(std::move(finding));
  }
  std::fill_n(static_cast<uint16_t *>(to), bytes / 2, poisonPattern);
  return copy;
}

void Machine::bulkCopy(void *to, const void *from, uint32_t bytes,
                       void *barrier, const void *code) {
  auto known = mbarrierAt.find(offsetOf(barrier));
  if (known == mbarrierAt.end()) {
    report(SimReport::Kind::Poison, code,
           "a bulk copy reports to an mbarrier that is not initialised");
    stop();
  }
  if (shadow && !known->second.seenByCopies)
    report(SimReport::Kind::Race, code,
           fmt::format("a bulk copy reports to the mbarrier at {}, and no "
                       "fence.mbarrier_init stands after that one's "
                       "initialisation",
                       arena.describe(offsetOf(barrier))));
  // What the generic proxy wrote is visible past a proxy fence only.
  const Clock nothing(2 * unsigned(shape.ctas));
  const Clock &sees = current->visible ? current->visible : nothing;
  known->second.copies.push_back(
      startCopy(to, from, bytes, &sees, "a bulk copy", code));
  if (options.policy == SimPolicy::Reverse)
    land(known->second);
}

void Machine::copyAsync(void *to, const void *from, uint32_t bytes,
                        const void *code) {
  // In the generic proxy: what the thread sees, the copy sees. The copy reads
  // at any time until the thread's wait, so the thread reads at both ends.
  const Copy copy = startCopy(to, from, bytes, nullptr, "cp.async", code);
  if (options.policy == SimPolicy::Reverse)
    std::memcpy(copy.to, copy.from, copy.bytes);
  if (current->groups.empty())
    current->groups.emplace_back();
  current->groups.back().push_back(copy);
}

void Machine::commitGroup() {
  if (current->groups.empty())
    current->groups.emplace_back();
  current->groups.emplace_back();
}

void Machine::waitGroup(uint32_t pending) {
  std::vector<std::vector<Copy>> &groups = current->groups;
  while (groups.size() > size_t(pending) + 1) {
    for (const Copy &copy : groups.front()) {
      if (options.policy != SimPolicy::Reverse)
        std::memcpy(copy.to, copy.from, copy.bytes);
      if (shadow) {
        current->known.addExtra(copy.agent, copy.time);
        read(copy.from, copy.bytes, LoadKind::Plain, copy.code);
      }
    }
    groups.erase(groups.begin());
  }
}

void Machine::fenceProxy() {
  fenceMbarrierInit();
  if (!shadow)
    return;
  current->visible.join(current->known);
  current->visible.addExtra(current->key, current->time);
  current->visibleTime = current->time;
  ++current->time;
}
