// SPDX-License-Identifier: Apache-2.0
/// \file
/// The inverse frequencies of rotary position embedding: one table, so that
/// the emitted kernel and the reference rotate by the same f32 angles.

#ifndef MEGA_ANALYSIS_ROPE_H
#define MEGA_ANALYSIS_ROPE_H

#include <cstdint>
#include <vector>

namespace mega {

/// `1 / theta^(2i / size)` for i < size / 2, every operation in f32. The angle
/// of pair i at position p is `float(p) * table[i]`, also in f32.
std::vector<float> ropeInverseFrequencies(int64_t size, double theta);

} // namespace mega

#endif // MEGA_ANALYSIS_ROPE_H
