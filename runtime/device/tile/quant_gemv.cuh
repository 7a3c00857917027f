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
  float total[kWarps * 2][16];
};

/// A CTA's run in chunks of at most a tile for each warp; a tile lies in one
/// chunk.
template <int kSteps, int kThreads> struct GemvChunk {
  static constexpr int kWarps = kThreads / 32;
  int begin, end;

  __device__ __forceinline__ GemvChunk(int begin, int end)
      : begin(begin), end(min((begin / kSteps + kWarps) * kSteps, end)) {}
  __device__ __forceinline__ Range ofWarp(int warp) const {
    const Range own = share(end - begin, warp, kWarps);
    return {begin + own.begin, begin + own.end};
  }
};

/// What a warp reads of a list of units: a run, in bursts of at most kUnits
/// units. A burst is one copy, so its units are neighbours in memory: of one
/// tile and, where steps fall into segments of kSegment, of one segment.
///
/// Starting copies is apart from using them, so that a stage may do the one as
/// soon as it knows which, and work on its activations meanwhile.
template <int kSteps, int kSegment, int kUnits, int kUnitBytes, int kThreads>
struct UnitStream {
  Range cta;      ///< the CTA's run
  int step, tile; ///< of the next unit to ask for
  int left;       ///< steps to the end of the warp's run
  const u8 *next; ///< the unit's address; null where a segment starts

  __device__ __forceinline__ explicit UnitStream(Range cta) : cta(cta) {
    start(GemvChunk<kSteps, kThreads>(cta.begin, cta.end)
              .ofWarp(threadIdx.x / 32));
  }
  __device__ __forceinline__ void start(Range run) {
    tile = run.begin / kSteps;
    step = run.begin % kSteps;
    left = run.end - run.begin;
    next = nullptr;
  }

  /// Units of a burst that starts at `step` of a run with `left` steps to go.
  static __device__ __forceinline__ int burst(int step, int left) {
    return min(min(kUnits, left), kSegment - step % kSegment);
  }

  template <typename Ring, typename UnitAddress>
  __device__ __forceinline__ void issue(Ring &ring, const UnitAddress &unit) {
    static_assert(kUnits <= Ring::kBurst, "a burst fits a slot of the ring");
    const int units = burst(step, left);
    if (next == nullptr)
      next = unit(tile, step);
    ring.issue(next, units * kUnitBytes);
    next += units * kUnitBytes;
    left -= units;
    step += units;
    if (step % kSegment == 0)
      next = nullptr;
    if (step == kSteps) {
      step = 0;
      ++tile;
    }
  }

  /// Starts as many copies as the ring takes.
  template <typename Ring, typename UnitAddress>
  __device__ __forceinline__ void fill(Ring &ring, const UnitAddress &unit) {
    while (left > 0 && ring.pending() < Ring::kDepth)
      issue(ring, unit);
  }
};

/// Runs the list's steps of `stream`. `unit(tile, step)` is a unit's address.
/// `sink(tile, row, values)` is called once for each row of each touched tile,
/// by one thread, with the tile's 16 sums over the steps in the run.
///
/// kStepsPerScale steps form a segment whose sum is multiplied by
/// `scale(segment)` before it is added: the experts of a down projection.
/// With kStepsPerScale == 0 nothing is scaled.
///
/// Units come through `ring`, which may hold the stream's first already and is
/// empty afterwards.
template <int kSteps, int kStepsPerScale, int kSets, int kThreads, int kLevels,
          int kLength, typename Stream, typename Ring, typename UnitAddress,
          typename Scale, typename Sink>
__device__ __forceinline__ void
quantGemv(Stream stream, const Activation<kLevels, kLength> &x,
          GemvScratch<kThreads / 32> &scratch, Ring &ring,
          const UnitAddress &unit, const Scale &scale, const Sink &sink) {
  constexpr int kWarps = kThreads / 32;
  constexpr bool kScaled = kStepsPerScale != 0;
  constexpr int kSegment = kScaled ? kStepsPerScale : kSteps;
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;

  for (int begin = stream.cta.begin; begin < stream.cta.end;) {
    const GemvChunk<kSteps, kThreads> chunk(begin, stream.cta.end);
    const Range run = chunk.ofWarp(warp);
    if (begin != stream.cta.begin) {
      __syncthreads(); // the last chunk's partial sums were read
      stream.start(run);
    }
    stream.fill(ring, unit);

    int step = run.begin % kSteps, left = run.end - run.begin, burst = 0;
    double *partial = scratch.partial[warp][0];
    const u8 *at = nullptr;
    RowSums part;
    double2 sum = {0, 0};
    if (left == 0 && lane < 16)
      partial[lane] = 0;
#pragma unroll 1
    while (left > 0) {
      if (burst == 0) {
        atTile((run.end - left) / kSteps);
        burst = Stream::burst(step, left);
        at = ring.wait();
      }
      Unit<kSets> weights;
      weights.loadShared(at);
      at += Unit<kSets>::kBytes;
      if (--burst == 0) {
        ring.release();
        if (stream.left > 0)
          stream.issue(ring, unit);
      }
      part.add(weights.multiply(x, step));
      --left;
      ++step;
      if (left == 0 || step % kSegment == 0) {
        const double2 rows = part.total<kLevels>();
        const float factor = kScaled ? scale((step - 1) / kSegment) : 1.0f;
        sum.x += factor * rows.x;
        sum.y += factor * rows.y;
        part = RowSums();
        if (left == 0 || step == kSteps) {
          if (lane % 4 == 0) {
            partial[lane / 4] = sum.x;
            partial[lane / 4 + 8] = sum.y;
          }
          partial += 16;
          sum = {0, 0};
          step = 0;
        }
      }
    }
    __syncthreads();

    // A half-warp a tile. Its sums lie in consecutive warps: the second half of
    // the first one's pair, if that one began with another tile, and the first
    // half of the rest.
    const int low = begin / kSteps, high = (chunk.end - 1) / kSteps;
    const int half = threadIdx.x / 16, row = lane % 16;
    for (int base = low + half / 2 * 2; base <= high; base += kWarps * 2) {
      const int tile = base + half % 2;
      if (tile <= high) {
        const u32 length = chunk.end - begin;
        const int first = max(tile * kSteps, begin) - begin;
        const int last = min((tile + 1) * kSteps, chunk.end) - begin - 1;
        const int from = ownerOf(first, length, kWarps);
        const int to = ownerOf(last, length, kWarps);
        const bool second = chunk.ofWarp(from).begin < tile * kSteps;
        double total = scratch.partial[from][second][row];
        for (int w = from + 1; w <= to; ++w)
          total += scratch.partial[w][0][row];
        scratch.total[half][row] = float(total);
      }
      __syncwarp();
      if (tile <= high)
        sink(tile, row, scratch.total[half]);
      __syncwarp();
    }
    begin = chunk.end;
  }
}

} // namespace mega
