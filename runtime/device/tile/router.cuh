// SPDX-License-Identifier: Apache-2.0
/// \file
/// Router scores and the choice of experts.

namespace mega {

/// A key that orders as the float does; no float gives 0.
__device__ __forceinline__ u32 orderedBits(float value) {
  const u32 bits = __float_as_uint(value);
  return bits & 0x80000000u ? ~bits : bits | 0x80000000u;
}

template <int kExperts, int kTop> struct RouterScratch {
  float score[kExperts];
  u32 key[kExperts];
};

/// Scores of the logits that a warp's lanes hold, in their place.
template <bool kSigmoid, int kOwn>
__device__ __forceinline__ void scoreLogits(float (&score)[kOwn]) {
  if (kSigmoid) {
#pragma unroll
    for (int i = 0; i < kOwn; ++i)
      score[i] = 1.0f / (1.0f + exponential(-score[i]));
    return;
  }
  float top = score[0];
#pragma unroll
  for (int i = 1; i < kOwn; ++i)
    top = fmaxf(top, score[i]);
  top = warpMax(top);
  float sum = 0;
#pragma unroll
  for (int i = 0; i < kOwn; ++i) {
    score[i] = exponential(score[i] - top);
    sum += score[i];
  }
  sum = warpSum(sum);
#pragma unroll
  for (int i = 0; i < kOwn; ++i)
    score[i] /= sum;
}

/// Turns `logit(e)` into the kTop best experts and their weights, by the CTA.
/// kSigmoid picks the score; `bias(e)` is added for the choice only. Equal
/// scores go to the lower index. Writes ids[kTop] and weights[kTop], best
/// first; `logit` is asked by the first warp only. `chosen()` is called by the
/// whole CTA as soon as the ids are there. A CTA barrier must follow.
template <int kExperts, int kTop, int kThreads, bool kSigmoid, bool kBiased,
          bool kRenormalize, typename Logit, typename Bias, typename Chosen>
__device__ __forceinline__ void
route(const Logit &logit, const Bias &bias, float epsilon, float scale,
      RouterScratch<kExperts, kTop> &scratch, int *ids, float *weights,
      const Chosen &chosen) {
  constexpr int kOwn = (kExperts + 31) / 32;
  // A softmax keeps its logits' order: the choice need not wait for it.
  constexpr bool kByLogit = !kSigmoid && !kBiased;
  const int lane = threadIdx.x % 32;
  float score[kOwn] = {};
  if (threadIdx.x < 32) {
#pragma unroll
    for (int i = 0; i < kOwn; ++i) {
      const int e = lane + 32 * i;
      score[i] = e < kExperts ? logit(e) : __int_as_float(0xff800000);
    }
    if (!kByLogit)
      scoreLogits<kSigmoid>(score);
#pragma unroll
    for (int i = 0; i < kOwn; ++i) {
      const int e = lane + 32 * i;
      if (e < kExperts)
        scratch.key[e] = orderedBits(kBiased ? score[i] + bias(e) : score[i]);
    }
  }
  __syncthreads();

  // An expert's place is how many are better; kLanes threads count together.
  constexpr int kLanes = kThreads / kExperts >= 32   ? 32
                         : kThreads / kExperts >= 16 ? 16
                         : kThreads / kExperts >= 8  ? 8
                         : kThreads / kExperts >= 4  ? 4
                         : kThreads / kExperts >= 2  ? 2
                                                     : 1;
#pragma unroll
  for (int base = 0; base < kExperts; base += kThreads / kLanes) {
    const int e = base + threadIdx.x / kLanes;
    int better = 0;
    if (e < kExperts) {
      const u32 own = scratch.key[e];
#pragma unroll
      for (int i = 0; i < (kExperts + kLanes - 1) / kLanes; ++i) {
        const int other = i * kLanes + threadIdx.x % kLanes;
        if (other < kExperts) {
          const u32 key = scratch.key[other];
          better += key > own || (key == own && other < e);
        }
      }
    }
#pragma unroll
    for (int delta = kLanes / 2; delta > 0; delta /= 2)
      better += __shfl_xor_sync(0xffffffffu, better, delta);
    if (e < kExperts && better < kTop && threadIdx.x % kLanes == 0)
      ids[better] = e;
  }
  __syncthreads();
  chosen();
  if (threadIdx.x < 32) {
    if (kByLogit)
      scoreLogits<kSigmoid>(score);
#pragma unroll
    for (int i = 0; i < kOwn; ++i)
      if (lane + 32 * i < kExperts)
        scratch.score[lane + 32 * i] = score[i];
    __syncwarp();
    // Every lane adds, in the order of the choice.
    float sum = 0;
#pragma unroll
    for (int k = 0; k < kTop; ++k)
      sum += scratch.score[ids[k]];
#pragma unroll
    for (int k = lane; k < kTop; k += 32) {
      const float own = scratch.score[ids[k]];
      weights[k] = (kRenormalize ? own / (sum + epsilon) : own) * scale;
    }
  }
}

} // namespace mega
