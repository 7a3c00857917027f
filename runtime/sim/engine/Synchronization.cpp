// SPDX-License-Identifier: Apache-2.0
/// \file
/// CTA barriers, atomics and fences: who waits, and what becomes ordered.

#include "Machine.h"

#include "Error.h"

#include <algorithm>
#include <cstring>

using namespace megalith;
using namespace megalith::sim;

static constexpr unsigned barrierCount = 16;
/// Wake-ups of one wait that changed nothing before it counts as endless.
static constexpr uint32_t wakeupLimit = 1 << 20;

void Machine::synchronize(const uint32_t *waiting, const uint32_t *passing) {
  const unsigned cta = current->key.cta();
  uint32_t latest = 0, fenced = ~0u;
  Clock joined = current->known, previous = joined;
  Clock visible = current->visible, previousVisible = visible;
  bool everyone = true;
  auto each = [&](auto &&body) {
    for (unsigned warp = 0; warp < warpCount; ++warp)
      for (uint32_t rest = waiting[warp] | passing[warp]; rest != 0;
           rest &= rest - 1) {
        const unsigned lane = __builtin_ctz(rest);
        body(thread(cta, warp * 32 + lane), passing[warp] >> lane & 1);
      }
  };
  each([&](Thread &thread, bool) {
    latest = std::max(latest, thread.time);
    fenced = std::min(fenced, thread.visibleTime);
    if (!thread.known.sameAs(previous)) {
      previous = thread.known;
      joined.join(previous);
    }
    if (!thread.visible.sameAs(previousVisible)) {
      previousVisible = thread.visible;
      visible.join(previousVisible);
    }
  });
  for (unsigned warp = 0; warp < warpCount; ++warp)
    everyone &= waiting[warp] == ~0u;
  if (everyone) {
    joined.raise(cta, latest);
    // One number instead of an extra for each thread's fence.
    if (visible)
      visible.raise(cta, fenced);
  } else
    for (unsigned warp = 0; warp < warpCount; ++warp) {
      const uint32_t mask = waiting[warp] | passing[warp];
      if (mask == ~0u)
        joined.addExtra(ThreadKey(cta, warp, 32), latest);
      else
        for (uint32_t rest = mask; rest != 0; rest &= rest - 1)
          joined.addExtra(ThreadKey(cta, warp, __builtin_ctz(rest)), latest);
    }
  each([&](Thread &thread, bool passes) {
    thread.time = latest + 1;
    if (!passes) {
      thread.known = joined;
      thread.visible = visible;
    }
  });
}

void Machine::barrier(unsigned id, unsigned count, bool wait,
                      const void *code) {
  const ThreadKey key = current->key;
  if (count == 0)
    count = unsigned(shape.threads);
  Barrier &at = barriers[key.cta() * barrierCount + id % barrierCount];
  if (at.arrived == 0)
    at.expected = count;
  else if (at.expected != count) {
    report(SimReport::Kind::Divergence, code,
           fmt::format("barrier {} is entered for {} threads, expected {} as "
                       "by those who wait there",
                       id, count, at.expected));
    stop();
  }
  (wait ? at.waiting : at.passing)[key.warp()] |= 1u << key.lane();
  if (++at.arrived < count) {
    if (wait) {
      current->waitBarrier = id;
      block(State::Barrier, code);
    }
    return;
  }
  if (shadow)
    synchronize(at.waiting, at.passing);
  Barrier done = at;
  at = Barrier();
  if (wait)
    done.waiting[key.warp()] &= ~(1u << key.lane());
  for (unsigned warp = 0; warp < warpCount; ++warp) {
    for (uint32_t rest = done.waiting[warp]; rest != 0; rest &= rest - 1)
      thread(key.cta(), warp * 32 + __builtin_ctz(rest)).state =
          State::Runnable;
    scheduler.wake(key.cta(), warp, done.waiting[warp]);
  }
}

Machine::Variable &Machine::variable(uint64_t offset, uint32_t bytes) {
  Variable &at = variableAt[offset];
  if (at.bytes != 0)
    return at;
  at.bytes = bytes;
  const Region *region = arena.find(offset);
  if (region && region->kind == RegionKind::Workspace) {
    // The workspace is zeroed once, when it is made; poison came later.
    std::memset(arena.base() + offset, 0, bytes);
    persistent[offset] = bytes;
  }
  return at;
}

const Machine::Version &Machine::load(Variable &at, uint64_t offset) {
  Thread &me = *current;
  size_t next = 0;
  if (me.metOffset == offset && !at.versions.empty()) {
    next = me.metVersion;
    if (me.metByLoad && next + 1 < at.versions.size())
      ++next;
  }
  // Never one that a write known to this thread has replaced.
  for (size_t later = next + 1; later < at.versions.size(); ++later)
    if (me.known.covers(at.versions[later].writer, at.versions[later].time))
      next = later;
  me.metOffset = offset;
  me.metVersion = next;
  me.metByLoad = true;
  return at.versions[next];
}

void Machine::acquire(const Version &version, Order order, Scope scope) {
  const bool wide = scope == Scope::Gpu || scope == Scope::System;
  const unsigned cta = current->key.cta();
  Clock &learns = order == Order::Acquire || order == Order::AcquireRelease
                      ? current->known
                      : current->seen;
  if (!learns)
    learns = Clock(2 * unsigned(shape.ctas));
  if (wide && &learns == &current->known)
    current->visible.join(version.visible);
  if (wide)
    learns.join(version.released);
  else
    learns.joinWithin(version.released, cta);
  if (version.narrowCta == cta)
    learns.join(version.narrow);
}

void Machine::checkLost(const Variable &at, uint64_t offset, AtomicOp op,
                        const void *code) {
  // A store against all changes since the last one; others against that.
  const bool store = op == AtomicOp::Store;
  const size_t end = store ? at.versions.size() : at.lastStore + 1;
  for (size_t i = at.lastStore; i < end; ++i) {
    const Version &earlier = at.versions[i];
    if (earlier.writer == current->key ||
        current->known.covers(earlier.writer, earlier.time))
      continue;
    Finding finding;
    finding.kind = SimReport::Kind::Race;
    finding.now = {current->key,
                   {codeOf(code), current->stage},
                   store ? "atomic store" : "atomic update"};
    finding.hasEarlier = true;
    finding.earlier = {earlier.writer, earlier.place,
                       i == at.lastStore ? "atomic store" : "atomic update"};
    finding.hasAddress = true;
    finding.offset = offset;
    finding.bytes = at.bytes;
    report(std::move(finding));
    return;
  }
}

/// Whether `value` ends a wait.
static bool ends(uint64_t value, Until until, uint64_t target) {
  switch (until) {
  case Until::BitSet:
    return value >> target & 1;
  case Until::BitClear:
    return !(value >> target & 1);
  case Until::AtLeast:
    return value >= target;
  }
  return false;
}

void Machine::checkTakenBack(Variable &at, uint64_t offset, uint64_t after,
                             AtomicOp op, const void *code) {
  for (size_t i = at.ended.size(); i-- > 0;) {
    const EndedWait wait = at.ended[i];
    if (ends(after, wait.until, wait.target))
      continue;
    const bool known = wait.thread == current->key ||
                       current->known.covers(wait.thread, wait.time);
    at.ended.erase(at.ended.begin() + long(i));
    if (known)
      continue;
    Finding finding;
    finding.kind = SimReport::Kind::Race;
    finding.now = {current->key,
                   {codeOf(code), current->stage},
                   op == AtomicOp::Store ? "atomic store" : "atomic update"};
    finding.hasEarlier = true;
    finding.earlier = {wait.thread, wait.place, "wait"};
    finding.hasAddress = true;
    finding.offset = offset;
    finding.bytes = at.bytes;
    report(std::move(finding));
  }
}

void Machine::waited(const void *address, uint32_t bytes, Until until,
                     uint64_t target, const void *code) {
  if (!shadow)
    return;
  const uint64_t offset = offsetOf(address);
  Variable &at = variable(offset, bytes);
  const Place place = {codeOf(code), current->stage};
  at.ended.push_back({current->key, current->time, place, until, target});
  // What came already, in this schedule, the wait could have met instead.
  for (size_t i = current->metVersion + 1; i < at.versions.size(); ++i) {
    const Version &later = at.versions[i];
    if (ends(later.value, until, target))
      continue;
    Finding finding;
    finding.kind = SimReport::Kind::Race;
    finding.now = {current->key, place, "wait"};
    finding.hasEarlier = true;
    finding.earlier = {later.writer, later.place,
                       i == at.lastStore ? "atomic store" : "atomic update"};
    finding.hasAddress = true;
    finding.offset = offset;
    finding.bytes = bytes;
    report(std::move(finding));
    return;
  }
}

void Machine::append(Variable &at, uint64_t offset, uint64_t value, AtomicOp op,
                     Order order, Scope scope, const void *code) {
  const bool wide = scope == Scope::Gpu || scope == Scope::System;
  Version next;
  // A read-modify-write carries on the release that it found; a store does not.
  if (op != AtomicOp::Store && !at.versions.empty())
    next = at.versions.back();
  next.value = value;
  next.writer = current->key;
  next.time = current->time;
  next.place = {codeOf(code), current->stage};
  if (op == AtomicOp::Store)
    at.lastStore = at.versions.size();
  Clock gives = current->fenced;
  if (order == Order::Release || order == Order::AcquireRelease) {
    gives = current->known;
    gives.addExtra(current->key, current->time);
    ++current->time;
  }
  if (gives && wide) {
    // Copies go to their own CTA's memory: nobody else needs to know of them.
    gives.dropExtras(unsigned(shape.ctas));
    next.released.join(gives);
    next.visible.join(current->visible);
  } else if (gives) {
    if (next.narrowCta != current->key.cta())
      next.narrow = Clock();
    next.narrowCta = current->key.cta();
    next.narrow.join(gives);
  }
  at.versions.push_back(std::move(next));
  current->metOffset = offset;
  current->metVersion = at.versions.size() - 1;
  current->metByLoad = false;
}

uint64_t Machine::atomic(AtomicOp op, void *address, uint32_t bytes,
                         uint64_t operand, uint64_t compare, Order order,
                         Scope scope, const void *code) {
  const uint64_t offset = offsetOf(address);
  if (offset < arena.constantBytes() || offset + bytes > arena.size() ||
      !arena.find(offset)) {
    Finding finding;
    finding.kind = SimReport::Kind::OutOfBounds;
    finding.now = {current->key, {codeOf(code), current->stage}, "atomic"};
    finding.hasAddress = true;
    finding.offset = offset;
    finding.bytes = bytes;
    report(std::move(finding));
    stop();
  }
  Variable &at = variable(offset, bytes);
  if (shadow) {
    Finding finding;
    const bool good = op == AtomicOp::Load
                          ? shadow->read(offset, bytes, AccessKind::Atomic,
                                         accessor(code), finding)
                          : shadow->write(offset, bytes, AccessKind::Atomic,
                                          accessor(code), finding);
    if (!good)
      report(std::move(finding));
  }
  uint64_t before = 0;
  std::memcpy(&before, address, bytes);
  if (shadow) {
    if (at.versions.empty()) {
      at.versions.emplace_back();
      at.versions.back().value = before;
    }
    if (at.versions.back().value != before) {
      // An ordinary write, which the shadow has checked, came between.
      at.lastStore = at.versions.size();
      at.versions.emplace_back();
      at.versions.back().value = before;
    }
    if (op == AtomicOp::Load) {
      const Version &version = load(at, offset);
      acquire(version, order, scope);
      return version.value;
    }
    checkLost(at, offset, op, code);
    if (op != AtomicOp::Store)
      acquire(at.versions.back(), order, scope);
  }
  uint64_t after = before;
  switch (op) {
  case AtomicOp::Load:
    return before;
  case AtomicOp::Store:
  case AtomicOp::Exchange:
    after = operand;
    break;
  case AtomicOp::Add:
    after = before + operand;
    break;
  case AtomicOp::CompareExchange:
    after = before == compare ? operand : before;
    break;
  case AtomicOp::Min:
    after = std::min(before, operand);
    break;
  case AtomicOp::Max:
    after = std::max(before, operand);
    break;
  case AtomicOp::And:
    after = before & operand;
    break;
  case AtomicOp::Or:
    after = before | operand;
    break;
  }
  std::memcpy(address, &after, bytes);
  if (bytes < 8)
    after &= (uint64_t(1) << 8 * bytes) - 1;
  if (shadow) {
    checkTakenBack(at, offset, after, op, code);
    append(at, offset, after, op, order, scope, code);
  }
  std::vector<uint32_t> waiters = std::move(at.waiters);
  at.waiters.clear();
  for (uint32_t index : waiters)
    wake(threads[index]);
  if (!waiters.empty() && scheduler.arrivedLast(current->key.cta()))
    yield();
  return before;
}

void Machine::spin(const void *address, uint32_t bytes, uint64_t seen,
                   const char *what, Until until, uint64_t target,
                   const void *code) {
  const uint64_t offset = offsetOf(address);
  uint64_t now = 0;
  std::memcpy(&now, address, bytes);
  if (current->waitOffset != offset || current->waitUntil != until ||
      current->waitTarget != target)
    current->wakeups = 0;
  current->waitOffset = offset;
  current->waitBytes = bytes;
  current->waitWhat = what;
  current->waitUntil = until;
  current->waitTarget = target;
  if (++current->wakeups > wakeupLimit) {
    report(SimReport::Kind::Livelock, code,
           fmt::format("a thread has waited {} times for {}", wakeupLimit,
                       describeVariable(*current)));
    stop();
  }
  Variable &at = variable(offset, bytes);
  if (shadow ? current->metOffset == offset &&
                   current->metVersion + 1 < at.versions.size()
             : now != seen)
    return;
  at.waiters.push_back(uint32_t(current - threads.data()));
  block(State::Spin, code);
}

void Machine::fence(Order, Scope) {
  if (!shadow)
    return;
  current->known.join(current->seen);
  current->fenced = current->known;
  current->fenced.addExtra(current->key, current->time);
  ++current->time;
}

//===----------------------------------------------------------------------===//
// Deadlock
//===----------------------------------------------------------------------===//

std::string Machine::describeVariable(const Thread &waiter) const {
  uint64_t value = 0;
  std::memcpy(&value, arena.base() + waiter.waitOffset, waiter.waitBytes);
  std::string words = fmt::format("the {} at {}, which is ", waiter.waitWhat,
                                  arena.describe(waiter.waitOffset));
  switch (waiter.waitUntil) {
  case Until::BitSet:
    return words + fmt::format("{:#x}, expected bit {} to be set", value,
                               waiter.waitTarget);
  case Until::BitClear:
    return words + fmt::format("{:#x}, expected bit {} to be clear", value,
                               waiter.waitTarget);
  case Until::AtLeast:
    return words +
           fmt::format("{}, expected at least {}", value, waiter.waitTarget);
  }
  return words;
}

std::string Machine::describeWait(const Thread &waiter) const {
  switch (waiter.state) {
  case State::Barrier:
    return waiter.waitBarrier == 0
               ? std::string("in __syncthreads")
               : fmt::format("in CTA barrier {}", waiter.waitBarrier);
  case State::Warp: {
    const Warp &warp = warps[waiter.key.cta() * warpCount + waiter.key.warp()];
    return fmt::format("in a warp instruction for lanes {:#x}, of which {:#x} "
                       "came",
                       warp.mask, warp.arrived);
  }
  case State::Spin:
    return "for " + describeVariable(waiter);
  case State::Mbarrier: {
    const Mbarrier &at = mbarrierAt.at(waiter.waitOffset);
    return fmt::format("for phase {} of the mbarrier at {}, which lacks {} "
                       "arrivals and {} bytes",
                       at.phase, arena.describe(waiter.waitOffset), at.pending,
                       at.bytes);
  }
  case State::Done:
    return "is done";
  case State::Runnable:
    return "could run";
  }
  return "";
}

/// "CTAs 0, 2 (tile 5)", for CTAs with the tiles of those who wait there.
static std::string describeCtas(const std::map<unsigned, int> &tileOf) {
  std::string words = tileOf.size() == 1 ? "CTA" : "CTAs";
  const char *separator = " ";
  for (auto [cta, tile] : tileOf) {
    words += separator + std::to_string(cta);
    if (tile >= 0)
      words += " (tile " + std::to_string(tile) + ")";
    separator = ", ";
  }
  return words;
}

/// One finding for each distinct wait, with the threads that are in it.
void Machine::reportDeadlock() {
  struct Group {
    const Thread *first;
    size_t count = 0;
    std::map<unsigned, int> tileOf;
  };
  std::vector<std::pair<std::string, Group>> groups;
  for (const Thread &waiter : threads) {
    std::string wait = describeWait(waiter);
    if (waiter.state != State::Done)
      wait += fmt::format("\n{} {}", waiter.waitCode, waiter.stage);
    auto at = std::find_if(groups.begin(), groups.end(),
                           [&](auto &group) { return group.first == wait; });
    if (at == groups.end())
      at = groups.insert(groups.end(), {wait, Group{&waiter, 0, {}}});
    ++at->second.count;
    // Of a CTA's threads, the first one's: they work on one tile, or on
    // neighbours.
    at->second.tileOf.emplace(waiter.key.cta(),
                              waiter.state == State::Done ? -1 : waiter.tile);
  }
  for (auto &[wait, group] : groups) {
    Finding finding;
    finding.kind = SimReport::Kind::Deadlock;
    finding.now = {
        group.first->key, {group.first->waitCode, group.first->stage}, ""};
    finding.hasAddress = group.first->state == State::Spin;
    finding.offset = group.first->waitOffset;
    finding.bytes = group.first->waitBytes;
    const bool done = group.first->state == State::Done;
    finding.message = fmt::format(
        "{} thread{} of {} {}", group.count, group.count == 1 ? "" : "s",
        describeCtas(group.tileOf),
        done ? "are done" : "wait " + wait.substr(0, wait.find('\n')));
    findings->push_back(std::move(finding));
  }
}
