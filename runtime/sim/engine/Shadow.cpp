// SPDX-License-Identifier: Apache-2.0

#include "Shadow.h"

#include "Error.h"

#include <sys/mman.h>

#include <algorithm>

using namespace megalith;
using namespace megalith::sim;

/// Bytes of a cell: the smallest element of a kernel's mutable memory.
static constexpr uint64_t granule = 2;

Shadow::Shadow(const Arena &arena)
    : arena(arena), first(arena.constantBytes()),
      cellBytes(((arena.size() - first) / granule + 1) * sizeof(Cell)) {
  void *mapped = ::mmap(nullptr, cellBytes, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (mapped == MAP_FAILED)
    fail(MEGALITH_RESOURCE_LIMIT, "no memory for {} bytes of shadow",
         cellBytes);
  cells = static_cast<Cell *>(mapped);
}

Shadow::~Shadow() { ::munmap(cells, cellBytes); }

void Shadow::clear() {
  ::madvise(cells, cellBytes, MADV_DONTNEED);
  lists.clear();
  freeLists.clear();
}

/// A stage in a byte: mod 255, with 255 for none.
static uint32_t packStage(uint32_t stage) {
  return stage == noStage ? 255 : stage % 255;
}

/// The stage closest to `near` that `packed` may stand for.
static uint32_t unpackStage(uint32_t packed, uint32_t near) {
  if (packed == 255)
    return noStage;
  if (near == noStage)
    return packed;
  uint32_t stage = near / 255 * 255 + packed;
  if (stage > near + 127 && stage >= 255)
    stage -= 255;
  else if (stage + 127 < near)
    stage += 255;
  return stage;
}

Shadow::Stamp Shadow::stampOf(AccessKind kind, const Accessor &by) {
  uint32_t flags = validFlag;
  if (kind == AccessKind::Atomic)
    flags |= atomicFlag;
  if (kind == AccessKind::Constant)
    flags |= constantFlag;
  return {flags | by.key.word, by.time,
          (by.place.code & 0xffffff) | packStage(by.place.stage) << 24};
}

bool Shadow::ordered(const Stamp &stamp, const Accessor &by) {
  ThreadKey key(stamp.who & keyMask);
  if (stamp.who & manyLanesFlag)
    return by.known.covers(key.wholeWarp(), stamp.time);
  return (key == by.key && !by.visible) || by.known.covers(key, stamp.time);
}

bool Shadow::orderedWrite(const Stamp &stamp, const Accessor &by) {
  ThreadKey key(stamp.who & keyMask);
  return ordered(stamp, by) && (!by.visible || key.cta() >= by.ctas ||
                                by.visible->covers(key, stamp.time));
}

void Shadow::describe(Finding &finding, SimReport::Kind kind, uint64_t offset,
                      uint32_t bytes, const char *what, const Accessor &by) {
  finding = Finding();
  finding.kind = kind;
  finding.now = {by.key, by.place, what};
  finding.hasAddress = true;
  finding.offset = offset;
  finding.bytes = bytes;
}

void Shadow::addEarlier(Finding &finding, const char *what,
                        const Stamp &stamp) {
  finding.hasEarlier = true;
  finding.earlier = {ThreadKey(stamp.who & keyMask),
                     {stamp.place & 0xffffff,
                      unpackStage(stamp.place >> 24, finding.now.place.stage)},
                     what};
}

bool Shadow::checkFresh(uint64_t offset, uint32_t bytes, bool isRead,
                        const Accessor &by, Finding &finding) {
  const Region *region = lastRegion;
  if (!region || offset - region->offset >= region->bytes)
    region = arena.find(offset);
  const char *what = isRead ? "read" : "write";
  if (!region) {
    describe(finding, SimReport::Kind::OutOfBounds, offset, bytes, what, by);
    return false;
  }
  lastRegion = region;
  if (!isRead || (region->kind == RegionKind::State &&
                  offset - region->offset < region->valid))
    return true;
  describe(finding, SimReport::Kind::Poison, offset, bytes, what, by);
  return false;
}

uint32_t Shadow::takeList() {
  if (freeLists.empty()) {
    lists.emplace_back();
    return uint32_t(lists.size() - 1);
  }
  uint32_t index = freeLists.back();
  freeLists.pop_back();
  return index;
}

void Shadow::addReader(Cell &cell, const Stamp &stamp, const Accessor &by) {
  Stamp &slot = cell.read;
  const uint32_t sticky = slot.who & constantFlag;
  if (!(slot.who & listFlag)) {
    const bool mine =
        (slot.who & (keyMask | manyLanesFlag)) == (stamp.who & keyMask);
    if (slot.who == 0 || mine || ordered(slot, by)) {
      slot = stamp;
      slot.who |= sticky;
      return;
    }
    uint32_t index = takeList();
    lists[index].assign(1, slot);
    slot.who = validFlag | listFlag | sticky;
    slot.time = index;
  }
  slot.who |= stamp.who & constantFlag;
  // One entry a warp. Neighbours in time are neighbours in the list.
  ReaderList &list = lists[slot.time];
  const uint32_t warp = by.key.wholeWarp().word;
  for (auto entry = list.rbegin(); entry != list.rend(); ++entry) {
    ThreadKey key(entry->who & keyMask);
    if (key.wholeWarp().word != warp)
      continue;
    if (!(key == by.key) && !ordered(*entry, by))
      entry->who |= manyLanesFlag;
    else
      entry->who &= ~(manyLanesFlag | keyMask), entry->who |= by.key.word;
    entry->time = std::max(entry->time, stamp.time);
    entry->place = stamp.place;
    return;
  }
  if (list.size() == list.capacity())
    list.erase(
        std::remove_if(list.begin(), list.end(),
                       [&](const Stamp &entry) { return ordered(entry, by); }),
        list.end());
  list.push_back(stamp);
}

bool Shadow::read(uint64_t offset, uint32_t bytes, AccessKind kind,
                  const Accessor &by, Finding &finding) {
  const char *what = kind == AccessKind::Constant ? "ld.global.nc read"
                     : kind == AccessKind::Atomic ? "atomic read"
                                                  : "read";
  const Stamp stamp = stampOf(kind, by);
  bool good = true;
  Cell *cell = cells + (offset - first) / granule;
  Cell *end = cells + (offset - first + bytes - 1) / granule + 1;
  for (uint64_t at = offset; cell != end; ++cell, at += granule) {
    const Stamp written = cell->written;
    if (good && written.who == 0)
      good = kind == AccessKind::Atomic ||
             checkFresh(at, bytes, true, by, finding);
    else if (good && kind == AccessKind::Constant) {
      good = false;
      describe(finding, SimReport::Kind::ConstantWritten, at, bytes, what, by);
      addEarlier(finding, "write", written);
    } else if (good && !orderedWrite(written, by) &&
               !(kind == AccessKind::Atomic && (written.who & atomicFlag))) {
      good = false;
      describe(finding, SimReport::Kind::Race, at, bytes, what, by);
      addEarlier(finding, written.who & atomicFlag ? "atomic write" : "write",
                 written);
    }
    addReader(*cell, stamp, by);
  }
  return good;
}

bool Shadow::write(uint64_t offset, uint32_t bytes, AccessKind kind,
                   const Accessor &by, Finding &finding) {
  const bool atomic = kind == AccessKind::Atomic;
  const char *what = atomic ? "atomic write" : "write";
  const Stamp stamp = stampOf(kind, by);
  bool good = true;
  auto check = [&](const Stamp &earlier, const char *earlierWhat, bool isWrite,
                   uint64_t at) {
    if (!good || earlier.who == 0 ||
        (isWrite ? orderedWrite(earlier, by) : ordered(earlier, by)) ||
        (atomic && (earlier.who & atomicFlag)))
      return;
    good = false;
    describe(finding, SimReport::Kind::Race, at, bytes, what, by);
    addEarlier(finding, earlierWhat, earlier);
  };
  Cell *cell = cells + (offset - first) / granule;
  Cell *end = cells + (offset - first + bytes - 1) / granule + 1;
  for (uint64_t at = offset; cell != end; ++cell, at += granule) {
    if (cell->written.who == 0)
      good = good && checkFresh(at, bytes, false, by, finding);
    else
      check(cell->written,
            cell->written.who & atomicFlag ? "atomic write" : "write", true,
            at);
    if (cell->read.who != 0) {
      const bool isList = cell->read.who & listFlag;
      if (good && (cell->read.who & constantFlag)) {
        good = false;
        describe(finding, SimReport::Kind::ConstantWritten, at, bytes, what,
                 by);
        addEarlier(finding, "ld.global.nc read",
                   isList ? lists[cell->read.time].back() : cell->read);
      }
      if (isList) {
        for (const Stamp &entry : lists[cell->read.time])
          check(entry, "read", false, at);
        lists[cell->read.time].clear();
        freeLists.push_back(cell->read.time);
      } else {
        check(cell->read, "read", false, at);
      }
      cell->read = Stamp();
    }
    cell->written = stamp;
  }
  return good;
}
