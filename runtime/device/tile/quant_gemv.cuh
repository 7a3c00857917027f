// SPDX-License-Identifier: Apache-2.0
/// \file
/// Quantised matrix times vector. The list of (tile, step) pairs, a step being
/// 128 inputs of a tile of 16 outputs, is shared out in equal runs, first over
/// CTAs and then over the warps of a CTA, so that every warp does the same work
/// whatever the shapes. Sums are added in the order of the warps.

namespace mega {

/// Shared memory of one quantGemv call.
template <int kWarps> struct GemvScratch {
  /// A warp's run is never longer than one tile, so it touches at most two.
  double partial[kWarps][2][16];
  float total[(kWarps + 1) * 16];
  int first[kWarps], last[kWarps]; ///< tiles that a warp's run touches
};

/// Length of the first chunk of `steps`: at most a tile for each warp, and no
/// tile is in two chunks, for a chunk's sums are a CTA's only ones.
template <int kSteps, int kWarps>
__device__ __forceinline__ int chunkLength(Range steps) {
  return min((steps.begin / kSteps + kWarps) * kSteps, steps.end) - steps.begin;
}

/// The run of warp `threadIdx.x / 32` in the first chunk of `steps`, as
/// quantGemv will walk it.
template <int kSteps, int kWarps>
__device__ __forceinline__ Range warpRun(Range steps) {
  const int length = chunkLength<kSteps, kWarps>(steps);
  const Range own = share(length, threadIdx.x / 32, kWarps);
  return {steps.begin + own.begin, steps.begin + own.end};
}

/// A warp's place in its run, in bursts of at most kBurst units. A burst is one
/// copy, so its units are neighbours in memory: of one tile and, where steps
/// fall into segments, of one segment.
template <int kSteps, int kSegment, int kSets, int kBurst> struct BurstCursor {
  int tile, step, left; ///< left: steps to the end of the run

  __device__ __forceinline__ BurstCursor(Range run)
      : tile(run.begin / kSteps), step(run.begin % kSteps),
        left(run.end - run.begin) {}

  /// Units of the burst that starts here; 0 at the end of the run.
  __device__ __forceinline__ int length() const {
    return min(min(kBurst, left), kSegment - step % kSegment);
  }
  __device__ __forceinline__ void advance(int units) {
    left -= units;
    step += units;
    if (step == kSteps) {
      step = 0;
      ++tile;
    }
  }
  template <typename Ring, typename UnitAddress>
  __device__ __forceinline__ void issue(Ring &ring, const UnitAddress &unit) {
    const int units = length();
    ring.issue(unit(tile, step), units * Unit<kSets>::kBytes);
    advance(units);
  }
};

/// Runs the list's steps `steps`. `unit(tile, step)` is a unit's address.
/// `sink(tile, row, values)` is called once for each row of each touched tile,
/// by one thread, with the tile's 16 sums over the steps in the run.
///
/// kStepsPerScale steps form a segment whose sum is multiplied by
/// `scale(segment)` before it is added: the experts of a down projection.
/// With kStepsPerScale == 0 nothing is scaled.
///
/// Units come through `ring`, which is empty before and after.
template <int kSteps, int kStepsPerScale, int kSets, int kLevels, int kLength,
          int kThreads, typename Ring, typename UnitAddress, typename Scale,
          typename Sink>
__device__ __forceinline__ void
quantGemv(Range steps, const Activation<kLevels, kLength> &x,
          GemvScratch<kThreads / 32> &scratch, Ring &ring,
          const UnitAddress &unit, const Scale &scale, const Sink &sink) {
  constexpr int kWarps = kThreads / 32;
  constexpr bool kScaled = kStepsPerScale != 0;
  constexpr int kSegment = kScaled ? kStepsPerScale : kSteps;
  constexpr int kBurst = Ring::kBurst;
  using Cursor = BurstCursor<kSteps, kSegment, kSets, kBurst>;
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;

  for (int chunk = steps.begin, length; chunk < steps.end; chunk += length) {
    length = chunkLength<kSteps, kWarps>({chunk, steps.end});
    const Range run = warpRun<kSteps, kWarps>({chunk, steps.end});
    const int firstTile = run.begin / kSteps;
    if (lane == 0) {
      scratch.first[warp] = run.begin < run.end ? firstTile : 0;
      scratch.last[warp] = run.begin < run.end ? (run.end - 1) / kSteps : -1;
    }
    Cursor here(run), ahead(run);
    while (ahead.left > 0 && ring.pending() < Ring::kDepth)
      ahead.issue(ring, unit);
    double part[4] = {};
    double2 sum = {0, 0};
    while (here.left > 0) {
      atTile(here.tile);
      const int units = here.length();
      const u8 *burst = ring.wait();
#pragma unroll
      for (int i = 0; i < kBurst; ++i)
        if (i < units) {
          uint4 b[4];
          x.fragments(here.step + i, b);
          Unit<kSets> weights;
          weights.loadShared(burst + i * Unit<kSets>::kBytes);
          if (i + 1 == units) {
            ring.release();
            if (ahead.left > 0)
              ahead.issue(ring, unit);
          }
          weights.multiply(b, part);
        }
      const int next = here.step + units;
      const bool tileEnds = next == kSteps || units == here.left;
      if (tileEnds || next % kSegment == 0) {
        const double2 rows = sumLevels<kLevels>(part);
        const float factor = kScaled ? scale(here.step / kSegment) : 1.0f;
        sum.x += factor * rows.x;
        sum.y += factor * rows.y;
#pragma unroll
        for (int j = 0; j < 4; ++j)
          part[j] = 0;
      }
      if (tileEnds) {
        if (lane % 4 == 0) {
          scratch.partial[warp][here.tile - firstTile][lane / 4] = sum.x;
          scratch.partial[warp][here.tile - firstTile][lane / 4 + 8] = sum.y;
        }
        sum = {0, 0};
      }
      here.advance(units);
    }
    __syncthreads();
    const int low = chunk / kSteps, high = (chunk + length - 1) / kSteps;
    const int values = (high - low + 1) * 16;
    for (int i = threadIdx.x; i < values; i += kThreads) {
      double total = 0;
#pragma unroll
      for (int w = 0; w < kWarps; ++w)
        if (scratch.first[w] <= low + i / 16 && low + i / 16 <= scratch.last[w])
          total += scratch.partial[w][low + i / 16 - scratch.first[w]][i % 16];
      scratch.total[i] = float(total);
    }
    __syncthreads();
    for (int i = threadIdx.x; i < values; i += kThreads)
      sink(low + i / 16, i % 16, scratch.total + i / 16 * 16);
    __syncthreads();
  }
}

} // namespace mega
