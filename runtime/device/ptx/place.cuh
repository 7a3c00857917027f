// SPDX-License-Identifier: Apache-2.0
/// \file
/// Where a thread stands in the schedule. No instructions: names for whoever
/// runs the text and reports on it (docs/simulator.md).

namespace mega {

/// The thread begins phase `phase` of the schedule.
__device__ __forceinline__ void atPhase(int) {}

/// The thread begins stage `stage` of its phase; 0 is where a phase begins.
__device__ __forceinline__ void atStage(int) {}

/// The thread works on tile `tile` of a list of its stage, or waits for what
/// that tile reads.
__device__ __forceinline__ void atTile(int) {}

} // namespace mega
