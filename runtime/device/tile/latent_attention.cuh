// SPDX-License-Identifier: Apache-2.0
/// \file
/// Absorbed multi-head latent attention in three stages (DeepSeek-V2, section
/// 2.1): fold the key weights into the query, attend to a chunk of the cache
/// with an online softmax, join the chunks and unfold the value weights.

namespace mega {

//===----------------------------------------------------------------------===//
// Query
//===----------------------------------------------------------------------===//

template <int kThreads> struct LatentQueryScratch {
  float partial[kThreads / 64][128];
};

/// `sink(c, sum_j q(j) W[j][c])` for the 128 latent channels of one step, with
/// W the kKeys / 16 units at `unit(tile)`: the transpose of what mma computes,
/// so it runs on plain FMA; it is a thousandth of a step's weights. Two warps
/// share a unit, 64 channels each. `ready()` comes before the first `q`.
template <int kThreads, int kKeys, int kSets, typename Ready, typename Q,
          typename UnitAddress, typename Sink>
__device__ __forceinline__ void
latentQuery(const Ready &ready, const Q &q,
            LatentQueryScratch<kThreads> &scratch, const UnitAddress &unit,
            const Sink &sink) {
  static_assert(kThreads % 64 == 0, "two warps share a unit");
  constexpr int kPairs = kThreads / 64, kTiles = kKeys / 16;
  const int pair = threadIdx.x / 64, half = threadIdx.x / 32 % 2;
  const int lane = threadIdx.x % 32;
  // Half a unit: words 0 to 3 are those of the half, and so are the scales.
  Unit<kSets> weights = {};
  auto load = [&](int tile) {
    const u8 *const from = unit(tile);
    weights.low = loadConstant16(from + 512 * half + 16 * lane);
#pragma unroll
    for (int set = 0; set < (kSets + 1) / 2; ++set)
      weights.scales[set] = loadConstant8(
          from + 1024 + 64 * (set + kSets / 2 * half) + 8 * (lane / 4));
  };
  if (pair < kTiles)
    load(pair);
  ready();
  float sums[16] = {};
#pragma unroll 1
  for (int tile = pair; tile < kTiles; tile += kPairs) {
    if (kTiles > kPairs && tile != pair)
      load(tile);
    const float upper = q(tile * 16 + lane / 4);
    const float lower = q(tile * 16 + lane / 4 + 8);
#pragma unroll
    for (int m = 0; m < 4; ++m) {
      u32 a[4];
      weights.operand(m, a);
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        const u32 up = a[2 * i], down = a[2 * i + 1];
        float &even = sums[m * 4 + i * 2], &odd = sums[m * 4 + i * 2 + 1];
        even = fmaf(upper, bf16ToFloat(u16(up)), even);
        even = fmaf(lower, bf16ToFloat(u16(down)), even);
        odd = fmaf(upper, __uint_as_float(up & 0xffff0000u), odd);
        odd = fmaf(lower, __uint_as_float(down & 0xffff0000u), odd);
      }
    }
  }
  // The eight lanes with one lane % 4 hold sums of the same 16 channels. Each
  // exchange halves what a lane has left: two channels in the end.
#pragma unroll
  for (int step = 0; step < 3; ++step) {
    const int left = 8 >> step;
    const bool high = lane & 2 * left;
#pragma unroll
    for (int i = 0; i < 8; ++i)
      if (i < left) {
        const float other = high ? sums[i] : sums[i + left];
        sums[i] = (high ? sums[i + left] : sums[i]) +
                  __shfl_xor_sync(0xffffffffu, other, 2 * left);
      }
  }
  // Word m of lane l covers channels 32 (m / 2) + 8 l + 4 (m % 2) + 0..3.
  const int channel =
      64 * half + 32 * (lane / 16) + 8 * (lane % 4) + lane / 4 % 4 * 2;
  *reinterpret_cast<float2 *>(&scratch.partial[pair][channel]) = {sums[0],
                                                                  sums[1]};
  __syncthreads();
  for (int c = threadIdx.x; c < 128; c += kThreads) {
    float sum = 0;
#pragma unroll
    for (int i = 0; i < kPairs; ++i)
      sum += scratch.partial[i][c];
    sink(c, sum * kUnitScale);
  }
  __syncthreads();
}

//===----------------------------------------------------------------------===//
// Scores and context of one chunk
//===----------------------------------------------------------------------===//

/// How heads and cache rows are shared out: 16 heads, the rows of an mma, make
/// a group, and each group's CTAs take a chunk of the cache each. More heads a
/// CTA would read the cache less often, but the query and the context more
/// often.
template <int kHeads> struct LatentChunks {
  static constexpr int kGroups = (kHeads + 15) / 16;

  static __device__ __forceinline__ int count(int length) {
    return min(max(int(gridDim.x) / kGroups, 1), length);
  }

  /// Rows of chunk `chunk` of `chunks`: sizes differ by at most one.
  static __device__ __forceinline__ Range rows(int length, int chunk,
                                               int chunks) {
    const int size = u32(length) / u32(chunks), rest = length - size * chunks;
    const int begin = chunk * size + min(chunk, rest);
    return {begin, begin + size + (chunk < rest ? 1 : 0)};
  }
};

/// Shapes of a pass over kRows (16 or 32) cache rows, for 16 heads; kRopeLevels
/// bf16 planes hold the rotated part of the query exactly. Rows of shared
/// arrays are padded so that what a warp reads or writes at once covers all
/// banks.
template <int kThreads_, int kLatent_, int kRope_, int kRopeLevels_, int kRows_,
          int kPartials_>
struct LatentShape {
  static constexpr int kThreads = kThreads_, kWarps = kThreads / 32;
  static constexpr int kLatent = kLatent_, kRope = kRope_;
  static constexpr int kRows = kRows_;
  /// Passes whose scores are in shared memory: two, or one if it is short.
  static constexpr int kPartials = kPartials_;
  static constexpr int kBuffers = 3; ///< passes there or on the way
  static constexpr int kLevels = 3;  ///< bf16 planes that hold an f32
  static constexpr int kWidth = (kLatent + kRope + 15) / 16 * 16;
  static constexpr int kStride = kWidth + 8;
  static constexpr int kQueryStride = (kWidth + 31) / 32 * 32 + 8;
  /// A warp's share of the score's inner axis, in steps of 16.
  static constexpr int kSteps = (kWidth / 16 + kWarps - 1) / kWarps;
  /// A warp's share of the context, in blocks of 16 columns.
  static constexpr int kBlocks = ((kLatent + 15) / 16 + kWarps - 1) / kWarps;
  static constexpr int kOwnHeads = (16 + kWarps - 1) / kWarps;

  /// Planes of the query at a warp's step.
  static __device__ __forceinline__ constexpr int levelsOf(int step) {
    return step * kWarps * 16 < kLatent ? kLevels : kRopeLevels_;
  }
};

template <typename Shape> struct LatentScratch {
  alignas(16) u16 cache[Shape::kBuffers][Shape::kRows][Shape::kStride];
  union {
    float query[16][Shape::kQueryStride];
    /// Scores over each warp's part of the inner axis.
    float partial[Shape::kPartials][Shape::kWarps][16][Shape::kRows + 8];
  };
  /// exp(score - maximum) as bf16 planes.
  u16 weights[Shape::kLevels][16][Shape::kRows + 8];
  float rescale[16];
};

/// Attends to cache rows `rows` for `heads` heads, at most 16. `absorbed(h)` is
/// the address of a head's absorbed query, `rotated(h, c)` gives an element of
/// the rotated part; `ready()` comes before both, and after the loads of the
/// first rows. Leaves the chunk's maximum and sum through
/// `sinkHead(h, maximum, sum)` and its weighted latent rows through
/// `sinkContext(h, c, pair)`.
///
/// Every warp has its part of the query in registers, and of the context. While
/// some warps do the softmax of a pass, others multiply for the scores of the
/// next one.
template <typename Shape, typename Ready, typename Absorbed, typename Rotated,
          typename SinkHead, typename SinkContext>
__device__ __forceinline__ void
latentScores(Range rows, int heads, const u16 *latent, const u16 *rope,
             float scale, const Ready &ready, const Absorbed &absorbed,
             const Rotated &rotated, LatentScratch<Shape> &s,
             const SinkHead &sinkHead, const SinkContext &sinkContext) {
  constexpr int kThreads = Shape::kThreads, kWarps = Shape::kWarps;
  constexpr int kLatent = Shape::kLatent, kRope = Shape::kRope;
  constexpr int kRows = Shape::kRows, kWidth = Shape::kWidth;
  constexpr int kLevels = Shape::kLevels, kSteps = Shape::kSteps;
  constexpr int kBlocks = Shape::kBlocks;
  static_assert(kLatent % 8 == 0 && kRope % 8 == 0,
                "cache rows are read 16 bytes at a time");
  static_assert(kRows % 16 == 0 && kRows <= 32, "softmax has a lane a row");
  const float lowest = __int_as_float(0xff800000);
  const int warp = warpOfThread();
  // Whether the warp has an i-th head, step or block: no question for most.
  auto owns = [&](int i, int count) {
    return (i + 1) * kWarps <= count || warp + i * kWarps < count;
  };
  constexpr int kAllSteps = kWidth / 16, kAllBlocks = (kLatent + 15) / 16;

  // Rows past the end repeat the last: their weight is zero.
  auto loadRows = [&](int base, int buffer) {
    const int lane = laneId();
#pragma unroll 1
    for (int r = warp; r < kRows; r += kWarps) {
      const int row = min(base + r, rows.end - 1);
#pragma unroll
      for (int first = 0; first < kWidth; first += 256) {
        const int c = first + lane * 8;
        u16 *const to = &s.cache[buffer][r][c];
        if (c < kLatent)
          CpAsync::copy16(to, latent + u64(row) * kLatent + c);
        else if (c < kLatent + kRope)
          CpAsync::copy16(to, rope + u64(row) * kRope + c - kLatent);
        else if (c < kWidth)
          *reinterpret_cast<uint4 *>(to) = {0, 0, 0, 0};
      }
    }
  };

  loadRows(rows.begin, 0);
  ready();
  // The query, whole lines at a time, then the next rows.
  const int lane = laneId();
#pragma unroll 1
  for (int h = warp; h < 16; h += kWarps) {
#pragma unroll
    for (int first = 0; first < kLatent; first += 128) {
      const int c = first + lane * 4;
      float *const to = &s.query[h][c];
      if (first + 128 <= kLatent || c < kLatent) {
        if (h < heads)
          CpAsync::copy16(to, absorbed(h) + c);
        else
          *reinterpret_cast<float4 *>(to) = {0, 0, 0, 0};
      }
    }
  }
  CpAsync::commit();
  if (rows.begin + kRows < rows.end)
    loadRows(rows.begin + kRows, 1);
  CpAsync::commit();
  constexpr int kTail = kWidth - kLatent;
  constexpr int kOwnTail = (16 * kTail + kThreads - 1) / kThreads;
  float tail[kOwnTail] = {};
#pragma unroll
  for (int i = 0; i < kOwnTail; ++i) {
    const int at = i * kThreads + threadIdx.x;
    if (at < 16 * kTail && at % kTail < kRope && at / kTail < heads)
      tail[i] = rotated(at / kTail, at % kTail);
  }
#pragma unroll
  for (int i = 0; i < kOwnTail; ++i) {
    const int at = i * kThreads + threadIdx.x;
    if (at < 16 * kTail)
      s.query[at / kTail][kLatent + at % kTail] = tail[i];
  }
  CpAsync::wait<1>();
  __syncthreads();

  // A operands of this warp's steps.
  const int g = lane / 4, t = lane % 4;
  u32 q[kSteps][kLevels][4] = {};
#pragma unroll
  for (int i = 0; i < kSteps; ++i)
    if (owns(i, kAllSteps))
#pragma unroll
      for (int j = 0; j < 4; ++j) {
        float2 rest = *reinterpret_cast<const float2 *>(
            &s.query[g + j % 2 * 8]
                    [(warp + i * kWarps) * 16 + j / 2 * 8 + 2 * t]);
#pragma unroll
        for (int level = 0; level < Shape::levelsOf(i); ++level) {
          const u32 part = packBf16x2(rest.x, rest.y);
          q[i][level][j] = part;
          rest.x -= __uint_as_float(part << 16);
          rest.y -= __uint_as_float(part & 0xffff0000u);
        }
      }

  float maximum[Shape::kOwnHeads], sum[Shape::kOwnHeads] = {};
#pragma unroll
  for (int i = 0; i < Shape::kOwnHeads; ++i)
    maximum[i] = lowest;
  float context[kBlocks][2][4] = {};

  // Scores of 16 heads and the rows of `cache`, over the warp's steps.
  auto multiplyScores = [&](const u16(&cache)[kRows][Shape::kStride],
                            float (&partial)[16][kRows + 8]) {
    const int lane = laneId(), g = lane / 4, t = lane % 4;
    float d[kRows / 8][4] = {};
#pragma unroll
    for (int i = 0; i < kSteps; ++i) {
      const int k = warp + i * kWarps;
      if (owns(i, kAllSteps)) {
        u32 b[kRows / 16][4];
#pragma unroll
        for (int r = 0; r < kRows / 16; ++r)
          LdmatrixX4::run(b[r], &cache[r * 16 + lane / 16 * 8 + lane % 8]
                                      [k * 16 + lane / 8 % 2 * 8]);
#pragma unroll
        for (int level = Shape::levelsOf(i) - 1; level >= 0; --level)
#pragma unroll
          for (int n = 0; n < kRows / 8; ++n)
            MmaM16N8K16Bf16::run(d[n], q[i][level][0], q[i][level][1],
                                 q[i][level][2], q[i][level][3],
                                 b[n / 2][n % 2 * 2], b[n / 2][n % 2 * 2 + 1]);
      }
    }
#pragma unroll
    for (int n = 0; n < kRows / 8; ++n) {
      float *const to = &partial[g][n * 8 + 2 * t];
      *reinterpret_cast<float2 *>(to) = {d[n][0], d[n][1]};
      *reinterpret_cast<float2 *>(to + 8 * (kRows + 8)) = {d[n][2], d[n][3]};
    }
  };

  // A warp a head, a lane a row; each lane sums its own weights.
  constexpr int kChains = kWarps < 4 ? kWarps : 4;
  auto softmax = [&](const float (&partial)[kWarps][16][kRows + 8], int count) {
    const int lane = laneId();
#pragma unroll
    for (int i = 0; i < Shape::kOwnHeads; ++i) {
      const int h = warp + i * kWarps;
      if (owns(i, 16)) {
        float score = 0;
        if (kRows == 32 || lane < kRows) {
          float sums[kChains];
#pragma unroll
          for (int part = 0; part < kWarps; ++part)
            sums[part % kChains] =
                part < kChains ? partial[part][h][lane]
                               : sums[part % kChains] + partial[part][h][lane];
          score = sums[0];
#pragma unroll
          for (int i = 1; i < kChains; ++i)
            score += sums[i];
        }
        score = lane < count ? score * scale : lowest;
        const float top = fmaxf(warpMax(score), maximum[i]);
        const float factor = expf(maximum[i] - top);
        float weight = expf(score - top);
        maximum[i] = top;
        sum[i] = fmaf(sum[i], factor, weight);
        if (lane < kRows)
#pragma unroll
          for (int level = 0; level < kLevels; ++level) {
            const u16 part = floatToBf16(weight);
            s.weights[level][h][lane] = part;
            weight -= bf16ToFloat(part);
          }
        if (lane == 0)
          s.rescale[h] = factor;
      }
    }
  };

  // 16 heads x latent columns, over the rows; each pass starts from zero, since
  // tensor cores truncate what they add.
  auto addContext = [&](const u16(&cache)[kRows][Shape::kStride]) {
    const int lane = laneId(), g = lane / 4;
    float d[kBlocks][2][4] = {};
#pragma unroll
    for (int r = 0; r < kRows; r += 16) {
      u32 a[kLevels][4], b[kBlocks][4];
#pragma unroll
      for (int n = 0; n < kBlocks; ++n) {
        const int c = (warp + n * kWarps) * 16;
        if (owns(n, kAllBlocks))
          LdmatrixX4Trans::run(b[n], &cache[r + lane % 16][c + lane / 16 * 8]);
      }
#pragma unroll
      for (int level = 0; level < kLevels; ++level)
        LdmatrixX4::run(a[level],
                        &s.weights[level][lane % 16][r + lane / 16 * 8]);
#pragma unroll
      for (int level = kLevels - 1; level >= 0; --level)
#pragma unroll
        for (int n = 0; n < kBlocks; ++n)
          if (owns(n, kAllBlocks))
#pragma unroll
            for (int half = 0; half < 2; ++half)
              MmaM16N8K16Bf16::run(d[n][half], a[level][0], a[level][1],
                                   a[level][2], a[level][3], b[n][2 * half],
                                   b[n][2 * half + 1]);
    }
    const float upper = s.rescale[g], lower = s.rescale[g + 8];
#pragma unroll
    for (int n = 0; n < kBlocks; ++n)
#pragma unroll
      for (int half = 0; half < 2; ++half)
#pragma unroll
        for (int j = 0; j < 4; ++j)
          context[n][half][j] =
              fmaf(context[n][half][j], j < 2 ? upper : lower, d[n][half][j]);
  };

  // Buffers and scores go round: pass i has its rows in buffer i % 3.
  int buffer = Shape::kBuffers - 1, next = 0, half = 0;
#pragma unroll 1
  for (int base = rows.begin - kRows; base < rows.end; base += kRows) {
    // Behind the barrier: the next pass's rows, this one's scores, and nobody
    // who reads the last one's rows and weights.
    if (base >= rows.begin)
      CpAsync::wait<0>();
    __syncthreads();
    if (base >= rows.begin && base + 2 * kRows < rows.end)
      loadRows(base + 2 * kRows, Shape::kBuffers - buffer - next);
    CpAsync::commit();
    const int order = Shape::kPartials == 1 ? 0 : warp / 4 % 2;
#pragma unroll 1
    for (int step = 0; step < 2; ++step) {
      if (step != order) {
        if (base + kRows < rows.end)
          multiplyScores(s.cache[next],
                         s.partial[Shape::kPartials == 1 ? 0 : half ^ 1][warp]);
      } else if (base >= rows.begin) {
        softmax(s.partial[Shape::kPartials == 1 ? 0 : half],
                min(rows.end - base, kRows));
      }
      if (Shape::kPartials == 1 && step == 0)
        __syncthreads();
    }
    if (base >= rows.begin) {
      __syncthreads();
      addContext(s.cache[buffer]);
    }
    buffer = next;
    next = next + 1 < Shape::kBuffers ? next + 1 : 0;
    half ^= 1;
  }

  const int last = laneId(), h = last / 4;
#pragma unroll
  for (int i = 0; i < Shape::kOwnHeads; ++i)
    if (owns(i, 16)) {
      const float total = warpSum(sum[i]);
      if (last == 0 && warp + i * kWarps < heads)
        sinkHead(warp + i * kWarps, maximum[i], total);
    }
#pragma unroll
  for (int n = 0; n < kBlocks; ++n)
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int first = (warp + n * kWarps) * 16 + half * 8;
      const int c = first + last % 4 * 2;
      // The last block may have columns that are the rotated part's.
      if (owns(n, kAllBlocks) && (kLatent % 16 == 0 || first < kLatent)) {
        const float (&d)[4] = context[n][half];
        if (h < heads)
          sinkContext(h, c, float2{d[0], d[1]});
        if (h + 8 < heads)
          sinkContext(h + 8, c, float2{d[2], d[3]});
      }
    }
  __syncthreads();
}

//===----------------------------------------------------------------------===//
// Joining the chunks, and values
//===----------------------------------------------------------------------===//

template <int kThreads> struct LatentValueScratch {
  float partial[kThreads / 32][128];
  alignas(16) u16 planes[3 * 128];
};

/// One head and one step of 128 latent channels: joins `chunks` (at most
/// kChunks) partial contexts, `context(i, c)` (four channels) with `maximum(i)`
/// and `sum(i)`, multiplies by the kValues / 16 units at `unit(tile)`, and
/// gives `sink(j, partial output)`. `ready()` comes before the first three.
template <int kThreads, int kChunks, int kValues, int kSets, typename Ready,
          typename Maximum, typename Sum, typename Context,
          typename UnitAddress, typename Sink>
__device__ __forceinline__ void
latentValue(int chunks, const Ready &ready, const Maximum &maximum,
            const Sum &sum, const Context &context,
            LatentValueScratch<kThreads> &scratch, const UnitAddress &unit,
            const Sink &sink) {
  constexpr int kWarps = kThreads / 32;
  static_assert(32 % kWarps == 0, "a chunk's factor is in one lane");
  const int warp = warpOfThread(), lane = threadIdx.x % 32;
  // The last warps multiply, the first ones join.
  constexpr int kTiles = kValues / 16;
  const int first = kWarps - 1 - warp;
  Unit<kSets> weights = {};
  if (first < kTiles)
    weights.load(unit(first));
  ready();
  // Everything is asked for before anything is used: one trip to L2.
  constexpr int kOwn = (kChunks + 31) / 32;
  constexpr int kOwnRows = (kChunks + kWarps - 1) / kWarps;
  float tops[kOwn], sums[kOwn];
#pragma unroll
  for (int i = 0; i < kOwn; ++i) {
    const int chunk = lane + 32 * i;
    tops[i] = chunk < chunks ? maximum(chunk) : __int_as_float(0xff800000);
    sums[i] = chunk < chunks ? sum(chunk) : 0.0f;
  }
  float4 parts[kOwnRows] = {};
#pragma unroll
  for (int i = 0; i < kOwnRows; ++i)
    if (warp + i * kWarps < chunks)
      parts[i] = context(warp + i * kWarps, 4 * lane);
  // Each warp finds the factors of all chunks for itself.
  float top = tops[0];
#pragma unroll
  for (int i = 1; i < kOwn; ++i)
    top = fmaxf(top, tops[i]);
  top = warpMax(top);
  float total = 0;
#pragma unroll
  for (int i = 0; i < kOwn; ++i) {
    tops[i] = expf(tops[i] - top);
    total = fmaf(sums[i], tops[i], total);
  }
  const float scale = 1.0f / warpSum(total);
  float4 joined = {0, 0, 0, 0};
#pragma unroll
  for (int i = 0; i < kOwnRows; ++i) {
    const float factor = __shfl_sync(0xffffffffu, tops[i * kWarps / 32],
                                     (warp + i * kWarps) % 32) *
                         scale;
    joined.x = fmaf(factor, parts[i].x, joined.x);
    joined.y = fmaf(factor, parts[i].y, joined.y);
    joined.z = fmaf(factor, parts[i].z, joined.z);
    joined.w = fmaf(factor, parts[i].w, joined.w);
  }
  *reinterpret_cast<float4 *>(&scratch.partial[warp][4 * lane]) = joined;
  __syncthreads();
  const Activation<3, 128> x{scratch.planes};
  if (threadIdx.x < 128) {
    float sums[4];
#pragma unroll
    for (int i = 0; i < kWarps; ++i)
      sums[i % 4] = i < 4 ? scratch.partial[i][threadIdx.x]
                          : sums[i % 4] + scratch.partial[i][threadIdx.x];
    x.set(threadIdx.x, (sums[0] + sums[1]) + (sums[2] + sums[3]));
  }
  // Behind the loads' latency, and while others join.
  u32 a[8][4] = {};
  if (first < kTiles)
#pragma unroll
    for (int m = 0; m < 8; ++m)
      weights.operand(m, a[m]);
  __syncthreads();
#pragma unroll 1
  for (int tile = first; tile < kTiles; tile += kWarps) {
    if (kTiles > kWarps && tile != first) {
      weights.load(unit(tile));
#pragma unroll
      for (int m = 0; m < 8; ++m)
        weights.operand(m, a[m]);
    }
    const uint4 *const fragments = x.fragments();
    float sums[4][4];
#pragma unroll
    for (int j = 0; j < 4; ++j) {
      const uint4 b = fragments[4 * j];
      float even[4] = {}, odd[4] = {};
      MmaM16N8K16Bf16::run(even, a[2 * j][0], a[2 * j][1], a[2 * j][2],
                           a[2 * j][3], b.x, b.y);
      MmaM16N8K16Bf16::run(odd, a[2 * j + 1][0], a[2 * j + 1][1],
                           a[2 * j + 1][2], a[2 * j + 1][3], b.z, b.w);
#pragma unroll
      for (int i = 0; i < 4; ++i)
        sums[j][i] = even[i] + odd[i];
    }
    float all[4];
#pragma unroll
    for (int i = 0; i < 4; ++i)
      all[i] = (sums[0][i] + sums[1][i]) + (sums[2][i] + sums[3][i]);
    // As Unit::multiply: a lane's second column is the second level.
    float2 rows = {all[0], all[2]};
    if (lane % 4 == 0) {
      rows.x += all[1];
      rows.y += all[3];
    }
    rows.x += __shfl_down_sync(0xffffffffu, rows.x, 1);
    rows.y += __shfl_down_sync(0xffffffffu, rows.y, 1);
    if (lane % 4 == 0) {
      sink(tile * 16 + lane / 4, rows.x * kUnitScale);
      sink(tile * 16 + lane / 4 + 8, rows.y * kUnitScale);
    }
  }
  __syncthreads();
}

} // namespace mega
