// SPDX-License-Identifier: Apache-2.0
/// \file
/// Router scores and the choice of experts.

namespace mega {

/// A key that orders as the float does; no float gives 0.
__device__ __forceinline__ u32 orderedBits(float value) {
  const u32 bits = __float_as_uint(value);
  return bits & 0x80000000u ? ~bits : bits | 0x80000000u;
}

/// Turns `logit(e)` into the kTop best experts and their weights, by one warp.
/// kSigmoid picks the score; `bias(e)` is added for the choice only. Equal
/// scores go to the lower index. Writes ids[kTop] and weights[kTop].
template <int kExperts, int kTop, bool kSigmoid, bool kBiased,
          bool kRenormalize, typename Logit, typename Bias>
__device__ __forceinline__ void route(const Logit &logit, const Bias &bias,
                                      float epsilon, float scale, int *ids,
                                      float *weights) {
  constexpr int kOwn = (kExperts + 31) / 32;
  const float lowest = __int_as_float(0xff800000);
  const int lane = threadIdx.x % 32;
  float score[kOwn];
  u32 key[kOwn];
  float top = lowest;
#pragma unroll
  for (int i = 0; i < kOwn; ++i) {
    const int e = lane + 32 * i;
    score[i] = e < kExperts ? logit(e) : lowest;
    top = fmaxf(top, score[i]);
  }
  if (kSigmoid) {
#pragma unroll
    for (int i = 0; i < kOwn; ++i)
      score[i] = 1.0f / (1.0f + exponential(-score[i]));
  } else {
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
#pragma unroll
  for (int i = 0; i < kOwn; ++i) {
    const int e = lane + 32 * i;
    key[i] = e < kExperts
                 ? orderedBits(kBiased ? score[i] + bias(e) : score[i])
                 : 0;
  }
  float chosenSum = 0;
  for (int k = 0; k < kTop; ++k) {
    u32 best = key[0];
#pragma unroll
    for (int i = 1; i < kOwn; ++i)
      best = max(best, key[i]);
    best = warpMaxBits(best);
    u32 id = 0xffffffffu;
#pragma unroll
    for (int i = kOwn - 1; i >= 0; --i)
      if (key[i] == best)
        id = lane + 32 * i;
    id = warpMinBits(id);
    float own = 0;
#pragma unroll
    for (int i = 0; i < kOwn; ++i)
      if (u32(lane + 32 * i) == id) {
        own = score[i];
        key[i] = 0;
      }
    own = __shfl_sync(0xffffffffu, own, id % 32);
    chosenSum += own;
    if (lane == 0) {
      ids[k] = int(id);
      weights[k] = own;
    }
  }
  __syncwarp();
  for (int k = lane; k < kTop; k += 32)
    weights[k] = (kRenormalize ? weights[k] / (chosenSum + epsilon)
                               : weights[k]) *
                 scale;
}

} // namespace mega
