// SPDX-License-Identifier: Apache-2.0
/// \file
/// Choices of the emitter that change text but never meaning.

#ifndef MEGA_TARGET_CUDA_EMITTEROPTIONS_H
#define MEGA_TARGET_CUDA_EMITTEROPTIONS_H

#include <cstdint>
#include <optional>

namespace mega {

/// Copies of weight units that a warp has in flight, and units in a copy.
struct RingShape {
  int64_t slots, units;
};

struct EmitterOptions {
  /// Load what nobody else writes (small weights, a recurrent state) before the
  /// wait at the barrier in front of the stage, instead of after it.
  bool prefetchWeights = true;
  /// Stamp the SM clock when a CTA starts and ends each phase, in a probe that
  /// lies behind the planned workspace. Off, it costs nothing.
  bool instrument = false;
  /// Absent: the largest shape that shared memory has room for.
  std::optional<RingShape> ring;
};

} // namespace mega

#endif // MEGA_TARGET_CUDA_EMITTEROPTIONS_H
