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
  float partial[kWarps][2][16];
  float total[(kWarps + 1) * 16];
  int first[kWarps], last[kWarps]; ///< tiles that a warp's run touches
};

/// The run of warp `threadIdx.x / 32` in the first chunk of `steps`, as
/// quantGemv will walk it.
template <int kSteps, int kWarps>
__device__ __forceinline__ Range warpRun(Range steps) {
  const int length = min(kWarps * kSteps, steps.end - steps.begin);
  const Range own = share(length, threadIdx.x / 32, kWarps);
  return {steps.begin + own.begin, steps.begin + own.end};
}

/// Starts this warp's first copies of a quantGemv that comes next, as many as
/// the ring holds.
template <int kSteps, int kSets, int kWarps, typename Ring,
          typename UnitAddress>
__device__ __forceinline__ void prefetchUnits(Range steps, Ring &ring,
                                              const UnitAddress &unit) {
  const Range run = warpRun<kSteps, kWarps>(steps);
  for (int at = run.begin; at < run.end && ring.pending() < Ring::kDepth; ++at)
    ring.issue(unit(at / kSteps, at % kSteps), Unit<kSets>::kBytes);
}

/// Runs the list's steps `steps`. `unit(tile, step)` is a unit's address.
/// `sink(tile, row, values)` is called once for each row of each touched tile,
/// by one thread, with the tile's 16 sums over the steps in the run.
///
/// kStepsPerScale steps form a segment whose sum is multiplied by
/// `scale(segment)` before it is added: the experts of a down projection.
/// With kStepsPerScale == 0 nothing is scaled.
///
/// Units come through `ring`; those that are pending at the call are the first
/// of this warp's run (prefetchUnits).
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
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;

  for (int chunk = steps.begin; chunk < steps.end; chunk += kWarps * kSteps) {
    const int length = min(kWarps * kSteps, steps.end - chunk);
    const Range run = warpRun<kSteps, kWarps>({chunk, steps.end});
    const int firstTile = run.begin / kSteps;
    if (lane == 0) {
      scratch.first[warp] = run.begin < run.end ? firstTile : 0;
      scratch.last[warp] = run.begin < run.end ? (run.end - 1) / kSteps : -1;
    }
    int ahead = run.begin + ring.pending();
    int aheadTile = ahead / kSteps, aheadStep = ahead % kSteps;
    auto refill = [&] {
      ring.issue(unit(aheadTile, aheadStep), Unit<kSets>::kBytes);
      ++ahead;
      if (++aheadStep == kSteps) {
        aheadStep = 0;
        ++aheadTile;
      }
    };
    while (ahead < run.end && ring.pending() < Ring::kDepth)
      refill();
    float even[4] = {}, odd[4] = {};
    float2 sum = {0, 0};
    int tile = firstTile, step = run.begin - firstTile * kSteps;
    for (int at = run.begin; at < run.end; ++at) {
      uint4 b[4];
      x.fragments(step, b);
      Unit<kSets> weights;
      weights.loadShared(ring.wait());
      ring.release();
      if (ahead < run.end)
        refill();
      weights.multiply(b, even, odd);
      const bool tileEnds = step + 1 == kSteps || at + 1 == run.end;
      if (tileEnds || (step + 1) % kSegment == 0) {
        const float2 part = sumLevels<kLevels>(even, odd);
        const float factor = kScaled ? scale(step / kSegment) : 1.0f;
        sum.x += factor * part.x;
        sum.y += factor * part.y;
#pragma unroll
        for (int j = 0; j < 4; ++j)
          even[j] = odd[j] = 0;
      }
      if (tileEnds) {
        if (lane % 4 == 0) {
          scratch.partial[warp][tile - firstTile][lane / 4] = sum.x;
          scratch.partial[warp][tile - firstTile][lane / 4 + 8] = sum.y;
        }
        sum = {0, 0};
      }
      if (++step == kSteps) {
        step = 0;
        ++tile;
      }
    }
    __syncthreads();
    const int low = chunk / kSteps, high = (chunk + length - 1) / kSteps;
    const int values = (high - low + 1) * 16;
    for (int i = threadIdx.x; i < values; i += kThreads) {
      float total = 0;
#pragma unroll
      for (int w = 0; w < kWarps; ++w)
        if (scratch.first[w] <= low + i / 16 && low + i / 16 <= scratch.last[w])
          total += scratch.partial[w][low + i / 16 - scratch.first[w]][i % 16];
      scratch.total[i] = total;
    }
    __syncthreads();
    for (int i = threadIdx.x; i < values; i += kThreads)
      sink(low + i / 16, i % 16, scratch.total + i / 16 * 16);
    __syncthreads();
  }
}

} // namespace mega
