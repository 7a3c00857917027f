// SPDX-License-Identifier: Apache-2.0
/// \file
/// Quantised matrix times vector. A list of tiles of 16 outputs is cut into
/// bursts, a burst being kUnits neighbouring units (128 inputs each) of a tile,
/// and shared out in equal runs over CTAs. A CTA's warps take the bursts of its
/// run in turn. Each burst's sums go to shared memory; a warp a tile adds them
/// in order.

namespace mega {

/// Shared memory of one quantGemv call, for chunks of kBursts bursts.
template <int kBursts, int kWarps> struct GemvScratch {
  float partial[kBursts][16];
  float total[kWarps][16];
};

/// The bursts of a list that a CTA reads, and where it is in them. Tiles have
/// kSteps units, of which each kSegment lie together in memory; kUnits divides
/// kSegment.
///
/// Starting copies is apart from using them, so that a stage may do the one as
/// soon as it knows which, and work on its activations meanwhile.
template <int kSteps, int kSegment, int kUnits, int kUnitBytes, int kThreads>
struct UnitStream {
  static constexpr int kWarps = kThreads / 32, kBurst = kUnits;
  static constexpr int kBurstBytes = kUnits * kUnitBytes;
  static constexpr int kSegmentSteps = kSegment;
  static constexpr int kPerTile = kSteps / kUnits; ///< bursts
  static_assert(kSegment % kUnits == 0, "a burst lies in one segment");
  /// A run is read in chunks whose sums fit shared memory: whole tiles, but for
  /// the run's ends; at most one a warp.
  static constexpr int kRoom = 256 / kPerTile;
  static constexpr int kTiles = kRoom < 1 ? 1 : kRoom > kWarps ? kWarps : kRoom;
  using Scratch = GemvScratch<kTiles * kPerTile, kWarps>;

  Range cta;   ///< the CTA's run, in bursts
  Range chunk; ///< the part of it that is being read
  int next;    ///< the burst to ask for; then the one kWarps further

  /// Takes up a CTA's run. Apart from the declaration, so that a stage's loads
  /// need not wait for how the list is shared out.
  __device__ __forceinline__ void begin(Range run) {
    cta = run;
    start(run.begin);
  }
  __device__ __forceinline__ void start(int begin) {
    chunk = {begin, min((begin / kPerTile + kTiles) * kPerTile, cta.end)};
    next = begin + warpOfThread();
  }

  template <typename Ring, typename UnitAddress>
  __device__ __forceinline__ void issue(Ring &ring, const UnitAddress &unit) {
    static_assert(kUnits <= Ring::kBurst, "a burst fits a slot of the ring");
    ring.issue(unit(u32(next) / kPerTile, u32(next) % kPerTile * kUnits),
               kBurstBytes);
    next += kWarps;
  }

  /// Starts as many copies as the ring takes.
  template <typename Ring, typename UnitAddress>
  __device__ __forceinline__ void fill(Ring &ring, const UnitAddress &unit) {
#pragma unroll 1
    while (next < chunk.end && ring.pending() < Ring::kDepth)
      issue(ring, unit);
  }
};

/// Multiplies the ring's oldest burst, of kUnits units, with the activations at
/// `fragments` and gives rows g and g + 8 (Unit::multiply). Calls `refill()` as
/// soon as the burst's slot is free. Whole warp.
template <int kUnits, int kSets, int kLevels, typename Ring, typename Refill>
__device__ __forceinline__ float2 multiplyBurst(Ring &ring,
                                                const uint4 *fragments,
                                                const Refill &refill) {
  const u8 *at = ring.wait();
  float2 sum = {0, 0};
#pragma unroll
  for (int left = kUnits; left > 0; --left) {
    Unit<kSets> unit;
    unit.loadShared(at);
    if (left == 1) {
      ring.release();
      refill();
    }
    const float2 rows = unit.template multiply<kLevels>(fragments);
    sum.x += rows.x;
    sum.y += rows.y;
    at += Unit<kSets>::kBytes;
    fragments += kStepFragments;
  }
  return sum;
}

/// Runs the bursts of `stream`. `unit(tile, step)` is a unit's address.
/// `sink(tile, row, values)` is called once for each row of each touched tile,
/// by the lanes of a half-warp, with the tile's 16 sums in shared memory; tiles
/// that other CTAs have a part of come with this CTA's part of the sums. It is
/// given what `ahead(tile, row)` returned before the products were computed.
///
/// Every kStepsPerScale steps form a segment whose sum is multiplied by
/// `scale(segment)` before it is added: the experts of a down projection.
/// With kStepsPerScale == 0 nothing is scaled.
///
/// Units come through `ring`, which may hold the stream's first already and is
/// empty afterwards.
template <int kSteps, int kStepsPerScale, int kSets, int kLevels, int kLength,
          typename Stream, typename Ring, typename UnitAddress, typename Scale,
          typename Ahead, typename Sink>
__device__ __forceinline__ void
quantGemv(Stream stream, const Activation<kLevels, kLength> &x,
          typename Stream::Scratch &scratch, Ring &ring,
          const UnitAddress &unit, const Scale &scale, const Ahead &ahead,
          const Sink &sink) {
  constexpr int kPerTile = Stream::kPerTile, kUnits = Stream::kBurst;
  const int warp = warpOfThread(), lane = threadIdx.x % 32;
  const uint4 *const fragments = x.fragments();

#pragma unroll 1
  while (stream.chunk.begin < stream.chunk.end) {
    stream.fill(ring, unit);
    const Range chunk = stream.chunk;
    const int count = chunk.end - chunk.begin;
    // A warp a tile adds the sums, a lane a row.
    const int own = chunk.begin / kPerTile + warp, row = lane % 16;
    decltype(ahead(own, row)) early = {};
    if (own * kPerTile < chunk.end)
      early = ahead(own, row);
#pragma unroll 1
    for (int i = warp; i < count; i += Stream::kWarps) {
      const int tile = u32(chunk.begin + i) / kPerTile;
      const int step = u32(chunk.begin + i) % kPerTile * kUnits;
      atTile(tile);
      float2 rows = multiplyBurst<kUnits, kSets, kLevels>(
          ring, fragments + step * kStepFragments, [&] {
            if (stream.next < chunk.end)
              stream.issue(ring, unit);
          });
      if (kLevels > 1) {
        // The third level is the next lane's.
        rows.x += __shfl_down_sync(0xffffffffu, rows.x, 1);
        rows.y += __shfl_down_sync(0xffffffffu, rows.y, 1);
      }
      if (kStepsPerScale != 0) {
        const float factor = scale(step / Stream::kSegmentSteps);
        rows.x *= factor;
        rows.y *= factor;
      }
      if (lane % 4 == 0) {
        scratch.partial[i][lane / 4] = rows.x;
        scratch.partial[i][lane / 4 + 8] = rows.y;
      }
    }
    __syncthreads();

    // Each half of the warp adds every other burst.
    if (own * kPerTile < chunk.end) {
      const int half = lane / 16;
      const int begin = max(own * kPerTile - chunk.begin, 0);
      const int end = min((own + 1) * kPerTile - chunk.begin, count);
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
        sink(own, row, scratch.total[warp], early);
    }
    if (chunk.end < stream.cta.end)
      __syncthreads(); // this chunk's sums were read
    stream.start(chunk.end);
  }
}

} // namespace mega
