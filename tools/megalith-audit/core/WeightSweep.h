// SPDX-License-Identifier: Apache-2.0
/// \file
/// Zeroes parts of the weights, one at a time, in place.

#ifndef MEGA_TOOLS_AUDIT_WEIGHTSWEEP_H
#define MEGA_TOOLS_AUDIT_WEIGHTSWEEP_H

#include "Subject.h"

#include <functional>

namespace mega::audit {

/// A checkpoint tensor, or one expert's part of it.
struct WeightPart {
  /// "blocks.0.moe.gate.w_q, expert 3".
  std::string name;
  size_t region;       ///< in the manifest's order
  size_t source;       ///< in the region's order
  size_t tensor;       ///< 0, or 0 to 2 for codes, scales, zeros
  int64_t expert = -1; ///< -1: all of the tensor
};

/// Every part of every packed tensor.
std::vector<WeightPart> partsOf(const megalith::Manifest &manifest);

/// Packed bytes that hold a part: as they are, and as they are with it zeroed.
struct PackedPart {
  uint64_t offset = 0;
  std::vector<uint8_t> present;
  std::vector<uint8_t> zeroed;
};

/// Packs the part's units. `weights` has every tensor of the manifest.
PackedPart packPart(const megalith::Manifest &manifest,
                    const TensorMap &weights, const WeightPart &part);

} // namespace mega::audit

#endif // MEGA_TOOLS_AUDIT_WEIGHTSWEEP_H
