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
  float partial[kThreads / 32][128];
};

/// `sink(c, sum_j q(j) W[j][c])` for the 128 latent channels of one step, with
/// W the kKeys / 16 units at `unit(tile)`: the transpose of what mma computes,
/// so it runs on plain FMA; it is a thousandth of a step's weights.
template <int kThreads, int kKeys, int kSets, typename Q, typename UnitAddress,
          typename Sink>
__device__ __forceinline__ void
latentQuery(const Q &q, LatentQueryScratch<kThreads> &scratch,
            const UnitAddress &unit, const Sink &sink) {
  constexpr int kWarps = kThreads / 32;
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  float sums[32] = {};
#pragma unroll 1
  for (int tile = warp; tile < kKeys / 16; tile += kWarps) {
    Unit<kSets> weights;
    weights.load(unit(tile));
    const float upper = q(tile * 16 + lane / 4);
    const float lower = q(tile * 16 + lane / 4 + 8);
#pragma unroll
    for (int m = 0; m < 8; ++m) {
      u32 a[4];
      weights.operand(m, a);
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const u32 up = a[2 * half], down = a[2 * half + 1];
        float &even = sums[m * 4 + half * 2], &odd = sums[m * 4 + half * 2 + 1];
        even = fmaf(upper, bf16ToFloat(u16(up)), even);
        even = fmaf(lower, bf16ToFloat(u16(down)), even);
        odd = fmaf(upper, bf16ToFloat(u16(up >> 16)), odd);
        odd = fmaf(lower, bf16ToFloat(u16(down >> 16)), odd);
      }
    }
  }
#pragma unroll
  for (int i = 0; i < 32; ++i) {
    float sum = sums[i];
    sum += __shfl_xor_sync(0xffffffffu, sum, 4);
    sum += __shfl_xor_sync(0xffffffffu, sum, 8);
    sum += __shfl_xor_sync(0xffffffffu, sum, 16);
    // Word m of lane l covers channels 32 (m / 2) + 8 l + 4 (m % 2) + 0..3.
    if (lane < 4)
      scratch.partial[warp][32 * (i / 8) + 8 * lane + i % 8] = sum;
  }
  __syncthreads();
  for (int c = threadIdx.x; c < 128; c += kThreads) {
    float sum = 0;
#pragma unroll
    for (int w = 0; w < kWarps; ++w)
      sum += scratch.partial[w][c];
    sink(c, sum * kUnitScale);
  }
  __syncthreads();
}

//===----------------------------------------------------------------------===//
// Scores and context of one chunk
//===----------------------------------------------------------------------===//

/// Shapes of one pass over a chunk, for up to kHeads heads (a multiple of 16).
/// Rows of shared arrays are padded by 16 bytes, which spreads the eight rows
/// of an mma operand over all banks.
template <int kThreads, int kHeads, int kLatent, int kRope> struct LatentShape {
  static constexpr int kRows = 16;  ///< cache rows at a time
  static constexpr int kLevels = 3; ///< bf16 planes that hold an f32
  static constexpr int kWidth = (kLatent + kRope + 15) / 16 * 16;
  static constexpr int kStride = kWidth + 8;
  static constexpr int kWarps = kThreads / 32;
  /// Warps split the score's inner axis: kParts for each block of 8 heads.
  static constexpr int kHeadBlocks = kHeads / 8;
  static constexpr int kParts =
      kWarps / kHeadBlocks > 0 ? kWarps / kHeadBlocks : 1;
};

template <int kThreads, int kHeads, int kLatent, int kRope>
struct LatentScratch {
  using Shape = LatentShape<kThreads, kHeads, kLatent, kRope>;
  u16 query[Shape::kLevels][kHeads][Shape::kStride];
  u16 cache[Shape::kRows][Shape::kStride];
  /// exp(score - maximum) as bf16 planes; 8 columns of padding as above.
  u16 weights[Shape::kLevels][kHeads][Shape::kRows + 8];
  float partial[Shape::kParts][Shape::kRows][kHeads];
  float maximum[kHeads], sum[kHeads], rescale[kHeads];
};

/// Attends to cache rows `rows` for kHeads heads. `absorbed(h, c)` gives four
/// elements of the absorbed query, `rotated(h, c)` one of the rotated part;
/// both give zeros for heads that do not exist. Leaves the chunk's maximum and
/// sum through `sinkHead(h, maximum, sum)` and its weighted latent rows through
/// `sinkContext(h, c, value)`.
template <int kThreads, int kHeads, int kLatent, int kRope, typename Absorbed,
          typename Rotated, typename SinkHead, typename SinkContext>
__device__ __forceinline__ void
latentScores(Range rows, const u16 *latent, const u16 *rope, float scale,
             const Absorbed &absorbed, const Rotated &rotated,
             LatentScratch<kThreads, kHeads, kLatent, kRope> &s,
             const SinkHead &sinkHead, const SinkContext &sinkContext) {
  using Shape = LatentShape<kThreads, kHeads, kLatent, kRope>;
  constexpr int kWarps = Shape::kWarps, kRows = Shape::kRows;
  constexpr int kWidth = Shape::kWidth, kLevels = Shape::kLevels;
  constexpr int kColumnBlocks = (kLatent / 8 + kWarps - 1) / kWarps;
  static_assert(kLatent % 8 == 0 && kRope % 8 == 0,
                "cache rows are read 16 bytes at a time");
  const float lowest = __int_as_float(0xff800000);
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  const int g = lane / 4, t = lane % 4;

  // Cache rows on their way from memory: those of the next pass.
  constexpr int kPieces = kWidth / 8;
  constexpr int kOwnPieces = (kRows * kPieces + kThreads - 1) / kThreads;
  uint4 pieces[kOwnPieces];
  auto loadRows = [&](int base) {
    const int count = min(kRows, rows.end - base);
#pragma unroll
    for (int k = 0; k < kOwnPieces; ++k) {
      const int i = threadIdx.x + k * kThreads;
      const int r = i / kPieces, c = i % kPieces * 8;
      // Rows past the end are zero: their weight is zero and must not be NaN.
      pieces[k] = {0, 0, 0, 0};
      if (r < count && c < kLatent)
        pieces[k] = loadShared16(latent + u64(base + r) * kLatent + c);
      else if (r < count && c < kLatent + kRope)
        pieces[k] = loadShared16(rope + u64(base + r) * kRope + c - kLatent);
    }
  };
  loadRows(rows.begin);

  // The query: everything is asked for before anything is used, a few pieces at
  // a time.
  constexpr int kBatch = 8;
  for (int first = 0; first < kHeads * (kLatent / 4);
       first += kThreads * kBatch) {
    float4 four[kBatch] = {};
#pragma unroll
    for (int k = 0; k < kBatch; ++k) {
      const int i = first + k * kThreads + threadIdx.x;
      if (i < kHeads * (kLatent / 4))
        four[k] = absorbed(i / (kLatent / 4), i % (kLatent / 4) * 4);
    }
#pragma unroll
    for (int k = 0; k < kBatch; ++k) {
      const int i = first + k * kThreads + threadIdx.x;
      if (i < kHeads * (kLatent / 4))
#pragma unroll
        for (int level = 0; level < kLevels; ++level) {
          const uint2 part = {packBf16x2(four[k].x, four[k].y),
                              packBf16x2(four[k].z, four[k].w)};
          *reinterpret_cast<uint2 *>(
              &s.query[level][i / (kLatent / 4)][i % (kLatent / 4) * 4]) = part;
          four[k].x -= __uint_as_float(part.x << 16);
          four[k].y -= __uint_as_float(part.x & 0xffff0000u);
          four[k].z -= __uint_as_float(part.y << 16);
          four[k].w -= __uint_as_float(part.y & 0xffff0000u);
        }
    }
  }
  constexpr int kTail = kWidth - kLatent;
  constexpr int kOwnTail = (kHeads * kTail + kThreads - 1) / kThreads;
  float tail[kOwnTail];
#pragma unroll
  for (int k = 0; k < kOwnTail; ++k) {
    const int i = k * kThreads + threadIdx.x;
    tail[k] = i < kHeads * kTail && i % kTail < kRope
                  ? rotated(i / kTail, i % kTail)
                  : 0.0f;
  }
#pragma unroll
  for (int k = 0; k < kOwnTail; ++k) {
    const int i = k * kThreads + threadIdx.x;
    if (i < kHeads * kTail)
#pragma unroll
      for (int level = 0; level < kLevels; ++level) {
        const u16 part = floatToBf16(tail[k]);
        s.query[level][i / kTail][kLatent + i % kTail] = part;
        tail[k] -= bf16ToFloat(part);
      }
  }
  for (int h = threadIdx.x; h < kHeads; h += kThreads) {
    s.maximum[h] = lowest;
    s.sum[h] = 0;
  }
  float context[kHeads / 16][kColumnBlocks][4] = {};

#pragma unroll 1
  for (int base = rows.begin; base < rows.end; base += kRows) {
    const int count = min(kRows, rows.end - base);
#pragma unroll
    for (int k = 0; k < kOwnPieces; ++k) {
      const int i = threadIdx.x + k * kThreads;
      if (i < kRows * kPieces)
        *reinterpret_cast<uint4 *>(&s.cache[i / kPieces][i % kPieces * 8]) =
            pieces[k];
    }
    if (base + kRows < rows.end)
      loadRows(base + kRows);
    __syncthreads();

    // Scores: 16 rows x 8 heads a warp, over its part of the inner axis.
#pragma unroll 1
    for (int job = warp; job < Shape::kHeadBlocks * Shape::kParts;
         job += kWarps) {
      const int block = job % Shape::kHeadBlocks;
      const int part = job / Shape::kHeadBlocks;
      float d[4] = {};
#pragma unroll 3
      for (int k = part; k < kWidth / 16; k += Shape::kParts) {
        const int c = k * 16 + 2 * t;
        auto pair = [](const u16 *address) {
          return *reinterpret_cast<const u32 *>(address);
        };
        const u32 a0 = pair(&s.cache[g][c]), a1 = pair(&s.cache[g + 8][c]);
        const u32 a2 = pair(&s.cache[g][c + 8]);
        const u32 a3 = pair(&s.cache[g + 8][c + 8]);
#pragma unroll
        for (int level = kLevels - 1; level >= 0; --level) {
          const u16 *row = s.query[level][block * 8 + g];
          MmaM16N8K16Bf16::run(d, a0, a1, a2, a3, pair(row + c),
                               pair(row + c + 8));
        }
      }
      float (*out)[kHeads] = s.partial[part];
      out[g][block * 8 + 2 * t] = d[0];
      out[g][block * 8 + 2 * t + 1] = d[1];
      out[g + 8][block * 8 + 2 * t] = d[2];
      out[g + 8][block * 8 + 2 * t + 1] = d[3];
    }
    __syncthreads();

    // Softmax over the 16 rows, half a warp a head.
    for (int h = threadIdx.x / 16; h < kHeads; h += kThreads / 16) {
      const int r = threadIdx.x % 16;
      float score = 0;
#pragma unroll
      for (int part = 0; part < Shape::kParts; ++part)
        score += s.partial[part][r][h];
      score = r < count ? score * scale : lowest;
      float top = score;
#pragma unroll
      for (int delta = 8; delta > 0; delta /= 2)
        top = fmaxf(top, __shfl_xor_sync(0xffffffffu, top, delta));
      const float before = s.maximum[h];
      top = fmaxf(top, before);
      float weight = r < count ? expf(score - top) : 0.0f;
      float sum = weight;
#pragma unroll
      for (int delta = 8; delta > 0; delta /= 2)
        sum += __shfl_xor_sync(0xffffffffu, sum, delta);
#pragma unroll
      for (int level = 0; level < kLevels; ++level) {
        const u16 piece = floatToBf16(weight);
        s.weights[level][h][r] = piece;
        weight -= bf16ToFloat(piece);
      }
      __syncwarp();
      if (r == 0) {
        const float factor = expf(before - top);
        s.rescale[h] = factor;
        s.maximum[h] = top;
        s.sum[h] = s.sum[h] * factor + sum;
      }
    }
    __syncthreads();

    // Context: heads x latent columns, over the 16 rows.
#pragma unroll
    for (int m = 0; m < kHeads / 16; ++m) {
      const float upper = s.rescale[m * 16 + g];
      const float lower = s.rescale[m * 16 + g + 8];
      u32 a[kLevels][4];
#pragma unroll
      for (int level = 0; level < kLevels; ++level) {
        auto pair = [&](int h, int r) {
          return *reinterpret_cast<const u32 *>(&s.weights[level][h][r]);
        };
        a[level][0] = pair(m * 16 + g, 2 * t);
        a[level][1] = pair(m * 16 + g + 8, 2 * t);
        a[level][2] = pair(m * 16 + g, 2 * t + 8);
        a[level][3] = pair(m * 16 + g + 8, 2 * t + 8);
      }
#pragma unroll
      for (int n = 0; n < kColumnBlocks; ++n) {
        const int block = warp + n * kWarps;
        if (block * 8 < kLatent) {
          float (&d)[4] = context[m][n];
          d[0] *= upper;
          d[1] *= upper;
          d[2] *= lower;
          d[3] *= lower;
          u32 b0, b1;
          LdmatrixX2Trans::run(b0, b1, &s.cache[lane % 16][block * 8]);
#pragma unroll
          for (int level = kLevels - 1; level >= 0; --level)
            MmaM16N8K16Bf16::run(d, a[level][0], a[level][1], a[level][2],
                                 a[level][3], b0, b1);
        }
      }
    }
    __syncthreads();
  }

  for (int h = threadIdx.x; h < kHeads; h += kThreads)
    sinkHead(h, s.maximum[h], s.sum[h]);
#pragma unroll
  for (int m = 0; m < kHeads / 16; ++m)
#pragma unroll
    for (int n = 0; n < kColumnBlocks; ++n) {
      const int block = warp + n * kWarps;
      if (block * 8 < kLatent) {
        const int h = m * 16 + g, c = block * 8 + 2 * t;
        const float (&d)[4] = context[m][n];
        sinkContext(h, c, float2{d[0], d[1]});
        sinkContext(h + 8, c, float2{d[2], d[3]});
      }
    }
  __syncthreads();
}

//===----------------------------------------------------------------------===//
// Joining the chunks, and values
//===----------------------------------------------------------------------===//

template <int kThreads, int kChunks> struct LatentValueScratch {
  float factor[kChunks];
  float partial[kThreads / 128][128];
  alignas(16) u16 planes[3 * 128];
};

/// One head and one step of 128 latent channels: joins `chunks` (at most
/// kChunks) partial contexts, `context(i, c)` with `maximum(i)` and `sum(i)`,
/// multiplies by the kValues / 16 units at `unit(tile)`, and gives
/// `sink(j, partial output)`.
template <int kThreads, int kChunks, int kValues, int kSets, typename Maximum,
          typename Sum, typename Context, typename UnitAddress, typename Sink>
__device__ __forceinline__ void
latentValue(int chunks, const Maximum &maximum, const Sum &sum,
            const Context &context,
            LatentValueScratch<kThreads, kChunks> &scratch,
            const UnitAddress &unit, const Sink &sink) {
  constexpr int kWarps = kThreads / 32, kRows = kThreads / 128;
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  const int c = threadIdx.x % 128, row = threadIdx.x / 128;
  // Everything is asked for before anything is used: one trip to L2. One warp
  // reads the maxima and sums, which all CTAs want at once.
  constexpr int kOwn = (kChunks + 31) / 32;
  constexpr int kOwnRows = (kChunks + kRows - 1) / kRows;
  float parts[kOwnRows];
#pragma unroll
  for (int i = 0; i < kOwnRows; ++i)
    parts[i] = row + i * kRows < chunks ? context(row + i * kRows, c) : 0.0f;
  if (warp == 0) {
    float tops[kOwn], sums[kOwn];
#pragma unroll
    for (int i = 0; i < kOwn; ++i) {
      const int chunk = lane + 32 * i;
      tops[i] = chunk < chunks ? maximum(chunk) : __int_as_float(0xff800000);
      sums[i] = chunk < chunks ? sum(chunk) : 0.0f;
    }
    float top = tops[0];
#pragma unroll
    for (int i = 1; i < kOwn; ++i)
      top = fmaxf(top, tops[i]);
    top = warpMax(top);
    float total = 0;
#pragma unroll
    for (int i = 0; i < kOwn; ++i) {
      tops[i] = expf(tops[i] - top);
      total += sums[i] * tops[i];
    }
    const float scale = 1.0f / warpSum(total);
#pragma unroll
    for (int i = 0; i < kOwn; ++i)
      if (lane + 32 * i < kChunks)
        scratch.factor[lane + 32 * i] = tops[i] * scale;
  }
  __syncthreads();
  float joined = 0;
#pragma unroll
  for (int i = 0; i < kOwnRows; ++i)
    if (row + i * kRows < chunks)
      joined = fmaf(scratch.factor[row + i * kRows], parts[i], joined);
  scratch.partial[row][c] = joined;
  __syncthreads();
  const Activation<3, 128> x{scratch.planes};
  if (threadIdx.x < 128) {
    joined = 0;
#pragma unroll
    for (int i = 0; i < kRows; ++i)
      joined += scratch.partial[i][threadIdx.x];
    x.set(threadIdx.x, joined);
  }
  __syncthreads();
#pragma unroll 1
  for (int tile = warp; tile < kValues / 16; tile += kWarps) {
    Unit<kSets> weights;
    weights.load(unit(tile));
    float2 rows = weights.template multiply<3>(x.fragments());
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
