// SPDX-License-Identifier: Apache-2.0
/// \file
/// The memory that a simulated kernel may touch: named regions with gaps
/// between them, in one mapping, so that "is this address ours" is one compare.

#ifndef MEGA_SIM_ENGINE_ARENA_H
#define MEGA_SIM_ENGINE_ARENA_H

#include <cstdint>
#include <string>
#include <vector>

namespace megalith::sim {

/// What a region is for, which decides what is legal there.
enum class RegionKind {
  Constant,  ///< never written by the kernel: weights, input
  State,     ///< lives from launch to launch
  Output,    ///< has no value when a launch starts
  Workspace, ///< the same, but for synchronisation variables
  Shared,    ///< a CTA's window; no value when a launch starts
};

/// A run of bytes.
struct Region {
  std::string name;
  RegionKind kind;
  uint64_t offset = 0; ///< in the arena
  uint64_t bytes = 0;
  /// State: bytes that have a value when a launch starts.
  uint64_t valid = 0;
};

/// Regions are added first, constants before all others; then the arena is
/// mapped once, zeroed.
class Arena {
public:
  Arena() = default;
  ~Arena();
  Arena(const Arena &) = delete;
  Arena &operator=(const Arena &) = delete;

  /// Returns the region's index.
  size_t add(std::string name, RegionKind kind, uint64_t bytes);
  void map();

  uint8_t *base() const { return memory; }
  uint64_t size() const { return end; }
  uint64_t constantBytes() const { return constantEnd; }
  uint8_t *address(size_t region) const {
    return memory + regions[region].offset;
  }
  Region &region(size_t index) { return regions[index]; }
  const Region &region(size_t index) const { return regions[index]; }
  size_t regionCount() const { return regions.size(); }

  /// The region that holds the byte at `offset`, or null.
  const Region *find(uint64_t offset) const;

  /// Fills a region with signalling NaNs: as f32, as bf16, and a wild integer.
  void poison(size_t region);

  /// "byte 12 of workspace" for messages.
  std::string describe(uint64_t offset) const;

private:
  std::vector<Region> regions;
  uint8_t *memory = nullptr;
  uint64_t end = 0, constantEnd = 0;
};

/// What `poison` writes, in each half of a word.
constexpr uint16_t poisonPattern = 0x7fa1;

} // namespace megalith::sim

#endif
