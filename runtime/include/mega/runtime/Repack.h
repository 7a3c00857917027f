// SPDX-License-Identifier: Apache-2.0
//
// From checkpoint tensors to the weight arena. docs/bundle-format.md defines
// the layouts; this is their only implementation, and unpackRegion its
// inverse.

#ifndef MEGA_RUNTIME_REPACK_H
#define MEGA_RUNTIME_REPACK_H

#include "mega/runtime/Manifest.h"
#include "mega/runtime/Status.h"
#include "mega/runtime/TensorMap.h"

#include <cstdint>
#include <vector>

namespace megalith {

/// Bytes of one 16 x 128 unit of a weight with that group.
uint64_t unitBytes(int64_t group);

/// Units of a region with those sources (an mma layout), in arena order.
/// Nothing on overflow.
std::optional<uint64_t>
unitCount(PackLayout layout, const std::vector<const WeightDesc *> &sources);

/// A quantised weight: its shape, and its bytes at any alignment.
struct QuantView {
  int64_t experts = 1;
  int64_t inputs = 0;
  int64_t outputs = 0;
  int64_t group = 0;
  /// u8 [experts, inputs/2, outputs], low nibble = even input.
  const uint8_t *codes = nullptr;
  /// bf16 [experts, inputs/group, outputs].
  const uint8_t *scales = nullptr;
  /// bf16 [experts, inputs/group, outputs]; integers in 0..15.
  const uint8_t *zeros = nullptr;
};

/// Writes units [first, first + count) of an mma region to `out`
/// (count * unitBytes bytes). `threads` 0 means all cores. Sources as in the
/// manifest: all of one inputs, outputs and group.
void packUnits(PackLayout layout, const std::vector<QuantView> &sources,
               uint64_t first, uint64_t count, uint8_t *out,
               unsigned threads = 0);

/// A quantised weight in plain arrays, indexed as QuantView's but with one
/// code a byte: codes [experts, inputs, outputs].
struct UnpackedQuant {
  std::vector<uint8_t> codes;
  /// bf16 bits [experts, inputs/group, outputs].
  std::vector<uint16_t> scales;
  /// Integers [experts, inputs/group, outputs].
  std::vector<uint8_t> zeros;
};

/// The inverse of packing a whole mma region: one element a source, whose
/// views give the shapes (their pointers are not used). Slow and plain.
std::vector<UnpackedQuant> unpackRegion(PackLayout layout,
                                        const std::vector<QuantView> &sources,
                                        const uint8_t *packed);

/// Builds the whole arena (manifest.weightBytes bytes, zeroed by this) on the
/// host. `map` must hold every tensor. NOT_READY lists missing ones; MISMATCH.
Status packWeights(const Manifest &manifest, const TensorMap &map,
                   uint8_t *arena);

} // namespace megalith

#endif
