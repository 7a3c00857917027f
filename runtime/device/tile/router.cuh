// SPDX-License-Identifier: Apache-2.0
/// \file
/// Router scores and the choice of experts.

namespace mega {

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
  float score[kOwn], key[kOwn];
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
      score[i] = 1.0f / (1.0f + expf(-score[i]));
  } else {
    top = warpMax(top);
    float sum = 0;
#pragma unroll
    for (int i = 0; i < kOwn; ++i) {
      score[i] = expf(score[i] - top);
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
    key[i] = e < kExperts ? (kBiased ? score[i] + bias(e) : score[i]) : lowest;
  }
  float chosenSum = 0, mine = 0;
  int myId = 0;
  for (int k = 0; k < kTop; ++k) {
    float best = lowest, bestScore = 0;
    int id = kExperts;
#pragma unroll
    for (int i = 0; i < kOwn; ++i)
      if (key[i] > best) {
        best = key[i];
        bestScore = score[i];
        id = lane + 32 * i;
      }
#pragma unroll
    for (int delta = 16; delta > 0; delta /= 2) {
      const float otherBest = __shfl_xor_sync(0xffffffffu, best, delta);
      const float otherScore = __shfl_xor_sync(0xffffffffu, bestScore, delta);
      const int otherId = __shfl_xor_sync(0xffffffffu, id, delta);
      if (otherBest > best || (otherBest == best && otherId < id)) {
        best = otherBest;
        bestScore = otherScore;
        id = otherId;
      }
    }
    chosenSum += bestScore;
    if (lane == k % 32) {
      mine = bestScore;
      myId = id;
    }
#pragma unroll
    for (int i = 0; i < kOwn; ++i)
      if (lane + 32 * i == id)
        key[i] = lowest;
    // A lane keeps one choice at a time: write out each full warp's worth.
    if (k % 32 == 31 || k + 1 == kTop) {
      const int slot = k / 32 * 32 + lane;
      if (slot <= k) {
        ids[slot] = myId;
        weights[slot] = mine;
      }
    }
  }
  __syncwarp();
  for (int k = lane; k < kTop; k += 32)
    weights[k] = (kRenormalize ? weights[k] / (chosenSum + epsilon)
                               : weights[k]) *
                 scale;
}

} // namespace mega
