// SPDX-License-Identifier: Apache-2.0
/// \file
/// Happens-before, as vector clocks that exploit how a grid synchronises.
///
/// Every thread has a scalar clock. What a thread knows of the others is mostly
/// "all of CTA c up to time t", since CTA barriers stand at both ends of what
/// crosses CTAs; a few extras say more about one warp or one thread. A CTA
/// barrier sets the clocks of all its threads to the same value, so one number
/// a CTA is exact there, and extras die at the next barrier.

#ifndef MEGA_SIM_ENGINE_CLOCK_H
#define MEGA_SIM_ENGINE_CLOCK_H

#include <cstdint>
#include <utility>
#include <vector>

namespace megalith::sim {

/// A thread of the grid in one word: CTA, warp, lane.
class ThreadKey {
public:
  ThreadKey() = default;
  ThreadKey(unsigned cta, unsigned warp, unsigned lane)
      : word(cta << 11 | warp << 6 | lane) {}
  explicit ThreadKey(uint32_t word) : word(word) {}

  unsigned cta() const { return word >> 11; }
  unsigned warp() const { return word >> 6 & 31; }
  unsigned lane() const { return word & 63; }
  unsigned index() const { return warp() * 32 + lane(); }
  /// Stands for all lanes of the warp.
  ThreadKey wholeWarp() const { return ThreadKey((word & ~63u) | 32); }
  bool operator==(ThreadKey other) const { return word == other.word; }

  uint32_t word = 0;
};

/// What somebody knows of the grid's past. Immutable once shared; copies share.
class Clock {
public:
  struct Extra {
    uint32_t key, time;
  };

  Clock() = default;
  /// Knows nothing of `ctas` CTAs.
  explicit Clock(unsigned ctas);
  Clock(const Clock &other) : data(other.data) { retain(); }
  Clock(Clock &&other) noexcept : data(std::exchange(other.data, nullptr)) {}
  Clock &operator=(Clock other) {
    std::swap(data, other.data);
    return *this;
  }
  ~Clock() { release(); }

  explicit operator bool() const { return data != nullptr; }
  bool sameAs(const Clock &other) const { return data == other.data; }

  /// Whether all that `thread` did up to `time` came before.
  bool covers(ThreadKey thread, uint32_t time) const {
    return time <= data->base[thread.cta()] || coversByExtra(thread, time);
  }

  /// Adds what `other` knows.
  void join(const Clock &other);
  /// Adds what `other` knows of CTA `cta`, and nothing else.
  void joinWithin(const Clock &other, unsigned cta);
  /// Adds the past of one thread or, with wholeWarp(), of one warp.
  void addExtra(ThreadKey key, uint32_t time);
  /// Forgets extras about CTAs from `cta` on.
  void dropExtras(unsigned cta);
  /// Adds the past of a whole CTA.
  void raise(unsigned cta, uint32_t time);

private:
  struct Data {
    unsigned references = 1;
    std::vector<uint32_t> base; ///< by CTA
    std::vector<Extra> extras;  ///< by key; times above the CTA's base
  };

  bool coversByExtra(ThreadKey thread, uint32_t time) const;
  void retain() {
    if (data)
      ++data->references;
  }
  void release() {
    if (data && --data->references == 0)
      delete data;
  }
  /// Makes `data` this object's alone.
  void own();

  Data *data = nullptr;
};

} // namespace megalith::sim

#endif
