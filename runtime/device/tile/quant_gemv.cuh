// SPDX-License-Identifier: Apache-2.0
/// \file
/// Quantised matrix times vector. The list of (tile, step) pairs, a step being
/// 128 inputs of a tile of 16 outputs, is shared out in equal runs over CTAs. A
/// CTA's warps take the bursts of its run in turn, so that what they ask for
/// at a time lies together: memory gives that sooner than as many runs apart.
/// Each burst's sums go to shared memory; a warp a tile adds them in order.

namespace mega {

/// Cuts a list of tiles into bursts: up to kUnits neighbouring units, of one
/// tile and one segment of kSegment steps, whose units lie together in memory.
template <int kSteps, int kSegment, int kUnits> struct BurstGrid {
  static constexpr int kBurst = kUnits, kSegmentSteps = kSegment;
  static constexpr int kPerSegment = (kSegment + kUnits - 1) / kUnits;
  static constexpr int kPerTile = kSteps / kSegment * kPerSegment;

  /// The burst that has the list's step `at`.
  static __device__ __forceinline__ int of(int at) {
    const int step = at % kSteps;
    return at / kSteps * kPerTile + step / kSegment * kPerSegment +
           step % kSegment / kUnits;
  }

  int tile, step, units;
  /// Burst `number`, as far as it lies in the run of steps `run`.
  __device__ __forceinline__ BurstGrid(int number, Range run) {
    tile = number / kPerTile;
    const int inTile = number % kPerTile;
    const int segment = inTile / kPerSegment;
    const int begin = segment * kSegment + inTile % kPerSegment * kUnits;
    const int end = min(begin + kUnits, (segment + 1) * kSegment);
    step = max(begin, run.begin - tile * kSteps);
    units = min(end, run.end - tile * kSteps) - step;
  }
};

/// A CTA's run in chunks whose sums fit shared memory: whole tiles, but for the
/// run's ends; at most one a warp.
template <typename Grid, int kSteps, int kWarps> struct GemvChunk {
  static constexpr int kRoom = 256 / Grid::kPerTile;
  static constexpr int kTiles = kRoom < 1 ? 1 : kRoom > kWarps ? kWarps : kRoom;
  static constexpr int kBursts = kTiles * Grid::kPerTile;

  static __device__ __forceinline__ Range at(int begin, int end) {
    return {begin, min((begin / kSteps + kTiles) * kSteps, end)};
  }
};

/// Shared memory of one quantGemv call, for chunks of kBursts bursts.
template <int kBursts, int kWarps> struct GemvScratch {
  float partial[kBursts][16];
  float total[kWarps][16];
};

/// The bursts of a list that a warp reads, and where it is in them.
///
/// Starting copies is apart from using them, so that a stage may do the one as
/// soon as it knows which, and work on its activations meanwhile.
template <int kSteps, int kSegment, int kUnits, int kUnitBytes, int kThreads>
struct UnitStream {
  static constexpr int kWarps = kThreads / 32;
  using Grid = BurstGrid<kSteps, kSegment, kUnits>;
  using Chunk = GemvChunk<Grid, kSteps, kWarps>;
  using Scratch = GemvScratch<Chunk::kBursts, kWarps>;

  Range cta;     ///< the CTA's run, in steps
  Range chunk;   ///< the part of it that is being read
  int next, end; ///< bursts to ask for: this one, those kWarps further, to end

  __device__ __forceinline__ explicit UnitStream(Range cta) : cta(cta) {
    start(cta.begin);
  }
  __device__ __forceinline__ void start(int begin) {
    chunk = Chunk::at(begin, cta.end);
    next = Grid::of(begin) + warpOfThread();
    end = chunk.begin < chunk.end ? Grid::of(chunk.end - 1) + 1 : 0;
  }

  template <typename Ring, typename UnitAddress>
  __device__ __forceinline__ void issue(Ring &ring, const UnitAddress &unit) {
    static_assert(kUnits <= Ring::kBurst, "a burst fits a slot of the ring");
    const Grid burst(next, chunk);
    ring.issue(unit(burst.tile, burst.step), burst.units * kUnitBytes);
    next += kWarps;
  }

  /// Starts as many copies as the ring takes.
  template <typename Ring, typename UnitAddress>
  __device__ __forceinline__ void fill(Ring &ring, const UnitAddress &unit) {
#pragma unroll 1
    while (next < end && ring.pending() < Ring::kDepth)
      issue(ring, unit);
  }
};

/// Multiplies the ring's oldest burst of `units` units with the activations at
/// `fragments` and gives rows g and g + 8 (Unit::multiply). Calls `refill()` as
/// soon as the burst's slot is free. Whole warp. One copy of the
/// multiplication: the code of a layer's stages should fit the instruction
/// cache.
template <int kSets, int kLevels, typename Ring, typename Refill>
__device__ __forceinline__ float2 multiplyBurst(Ring &ring, int units,
                                                const uint4 *fragments,
                                                const Refill &refill) {
  const u8 *at = ring.wait();
  float2 sum = {0, 0};
#pragma unroll 1
  do {
    Unit<kSets> unit;
    unit.loadShared(at);
    if (--units == 0) {
      ring.release();
      refill();
    }
    const float2 rows = unit.template multiply<kLevels>(fragments);
    sum.x += rows.x;
    sum.y += rows.y;
    at += Unit<kSets>::kBytes;
    fragments += kStepFragments;
  } while (units > 0);
  return sum;
}

/// Runs the list's steps of `stream`. `unit(tile, step)` is a unit's address.
/// `sink(tile, row, values)` is called once for each row of each touched tile,
/// by the lanes of a half-warp, with the tile's 16 sums in shared memory; tiles
/// that other CTAs have a part of come with this CTA's part of the sums.
///
/// Every kStepsPerScale steps form a segment whose sum is multiplied by
/// `scale(segment)` before it is added: the experts of a down projection.
/// With kStepsPerScale == 0 nothing is scaled.
///
/// Units come through `ring`, which may hold the stream's first already and is
/// empty afterwards.
template <int kSteps, int kStepsPerScale, int kSets, int kLevels, int kLength,
          typename Stream, typename Ring, typename UnitAddress, typename Scale,
          typename Sink>
__device__ __forceinline__ void
quantGemv(Stream stream, const Activation<kLevels, kLength> &x,
          typename Stream::Scratch &scratch, Ring &ring,
          const UnitAddress &unit, const Scale &scale, const Sink &sink) {
  using Grid = typename Stream::Grid;
  const int warp = warpOfThread(), lane = threadIdx.x % 32;
  const uint4 *const fragments = x.fragments();

#pragma unroll 1
  while (stream.chunk.begin < stream.chunk.end) {
    stream.fill(ring, unit);
    const Range chunk = stream.chunk;
    const int first = Grid::of(chunk.begin);
#pragma unroll 1
    for (int number = first + warp; number < stream.end;
         number += Stream::kWarps) {
      const Grid burst(number, chunk);
      atTile(burst.tile);
      float2 rows = multiplyBurst<kSets, kLevels>(
          ring, burst.units, fragments + burst.step * kStepFragments, [&] {
            if (stream.next < stream.end)
              stream.issue(ring, unit);
          });
      if (kLevels > 1) {
        // The third level is the next lane's.
        rows.x += __shfl_down_sync(0xffffffffu, rows.x, 1);
        rows.y += __shfl_down_sync(0xffffffffu, rows.y, 1);
      }
      if (kStepsPerScale != 0) {
        const float factor = scale(burst.step / Grid::kSegmentSteps);
        rows.x *= factor;
        rows.y *= factor;
      }
      if (lane % 4 == 0) {
        scratch.partial[number - first][lane / 4] = rows.x;
        scratch.partial[number - first][lane / 4 + 8] = rows.y;
      }
    }
    __syncthreads();

    // A warp a tile, of which each half adds every other burst.
    const int tile = chunk.begin / kSteps + warp;
    if (tile * kSteps < chunk.end) {
      const int row = lane % 16, half = lane / 16;
      const int begin = max(tile * Grid::kPerTile, first) - first;
      const int end = min((tile + 1) * Grid::kPerTile, stream.end) - first;
      constexpr int kAhead = 6; // loads on their way at a time
      double total = 0;
#pragma unroll 1
      for (int b = begin + half; b < end; b += 2 * kAhead) {
        double parts[kAhead];
#pragma unroll
        for (int i = 0; i < kAhead; ++i)
          parts[i] = b + 2 * i < end ? scratch.partial[b + 2 * i][row] : 0.0f;
        total += ((parts[0] + parts[1]) + (parts[2] + parts[3])) +
                 (parts[4] + parts[5]);
      }
      total += __shfl_xor_sync(0xffffffffu, total, 16);
      if (half == 0)
        scratch.total[warp][row] = float(total) * kUnitScale;
      __syncwarp();
      if (half == 0)
        sink(tile, row, scratch.total[warp]);
    }
    if (chunk.end < stream.cta.end)
      __syncthreads(); // this chunk's sums were read
    stream.start(chunk.end);
  }
}

} // namespace mega
