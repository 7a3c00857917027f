// SPDX-License-Identifier: Apache-2.0
/// \file
/// Who wrote and who read each half-word of mutable memory last, and whether
/// the next access is ordered after them.

#ifndef MEGA_SIM_ENGINE_SHADOW_H
#define MEGA_SIM_ENGINE_SHADOW_H

#include "Arena.h"
#include "Clock.h"
#include "Finding.h"

#include <deque>
#include <vector>

namespace megalith::sim {

/// Who accesses, and what it knows.
struct Accessor {
  ThreadKey key;
  uint32_t time;
  const Clock &known;
  Place place;
  /// Set for an asynchronous copy: what the generic proxy wrote and a proxy
  /// fence made visible to it. Not even its own issuer's copies wait for it.
  const Clock *visible = nullptr;
  /// CTAs of the grid; keys behind them are those of asynchronous copies.
  unsigned ctas = ~0u;
};

/// How memory is accessed.
enum class AccessKind : uint8_t { Plain, Constant, Atomic };

/// A shadow of the arena behind its constants. Every access of a launch goes
/// through `read` and `write`, which return false and fill `finding` if it is
/// wrong; the access counts in any case.
class Shadow {
public:
  explicit Shadow(const Arena &arena);
  ~Shadow();
  Shadow(const Shadow &) = delete;
  Shadow &operator=(const Shadow &) = delete;

  /// Forgets all accesses: what comes next is ordered after them.
  void clear();

  bool read(uint64_t offset, uint32_t bytes, AccessKind kind,
            const Accessor &by, Finding &finding);
  bool write(uint64_t offset, uint32_t bytes, AccessKind kind,
             const Accessor &by, Finding &finding);

private:
  /// An access, packed. `who` is 0 for none, else flags and the key.
  struct Stamp {
    uint32_t who = 0, time = 0;
    uint32_t place = 0; ///< code offset; the top byte says the stage mod 255
  };
  /// `read.who` with ListFlag: read.time is an index into `lists`.
  struct Cell {
    Stamp written, read;
  };
  static constexpr uint32_t validFlag = 1u << 31, atomicFlag = 1u << 30,
                            constantFlag = 1u << 29, listFlag = 1u << 28,
                            /// Several lanes of the warp; the last one's name.
      manyLanesFlag = 1u << 27, keyMask = manyLanesFlag - 1;
  using ReaderList = std::vector<Stamp>;

  static Stamp stampOf(AccessKind kind, const Accessor &by);
  static bool ordered(const Stamp &stamp, const Accessor &by);
  /// The same for an earlier write, which an asynchronous copy must also see.
  static bool orderedWrite(const Stamp &stamp, const Accessor &by);
  void addReader(Cell &cell, const Stamp &stamp, const Accessor &by);
  uint32_t takeList();
  /// Whether the half-word has a value when a launch starts; with a finding if
  /// it belongs to no region.
  bool checkFresh(uint64_t offset, uint32_t bytes, bool isRead,
                  const Accessor &by, Finding &finding);
  static void describe(Finding &finding, SimReport::Kind kind, uint64_t offset,
                       uint32_t bytes, const char *what, const Accessor &by);
  static void addEarlier(Finding &finding, const char *what,
                         const Stamp &stamp);

  const Arena &arena;
  uint64_t first; ///< arena offset of cell 0
  Cell *cells;
  uint64_t cellBytes;
  std::deque<ReaderList> lists;
  std::vector<uint32_t> freeLists;
  const Region *lastRegion = nullptr;
};

} // namespace megalith::sim

#endif
