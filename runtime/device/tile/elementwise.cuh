// SPDX-License-Identifier: Apache-2.0
/// \file
/// Tile-local ops that touch state or position: short convolution and rotary
/// embedding.

namespace mega {

/// One channel of a causal convolution: the last kTaps - 1 inputs from `state`
/// (kTaps - 1 rows of kChannels, oldest first), `x` the newest. Shifts the state
/// in place; the caller owns the channel. `taps` are the channel's weights.
template <int kTaps, int kChannels>
__device__ __forceinline__ float shortConv(u16 *state, const u16 *taps,
                                           int channel, float x) {
  u16 row[kTaps];
#pragma unroll
  for (int t = 0; t + 1 < kTaps; ++t)
    row[t] = state[t * kChannels + channel];
  row[kTaps - 1] = floatToBf16(x);
  float sum = 0;
#pragma unroll
  for (int t = 0; t < kTaps; ++t)
    sum = fmaf(t + 1 < kTaps ? bf16ToFloat(row[t]) : x,
               bf16ToFloat(loadConstantBf16(taps + channel * kTaps + t)), sum);
#pragma unroll
  for (int t = 0; t + 1 < kTaps; ++t)
    state[t * kChannels + channel] = row[t + 1];
  return sum;
}

/// Element of a rotated pair: `own` and `other` are its members, `odd` says
/// which one is asked for (RoFormer, equation 34).
__device__ __forceinline__ float rotate(float own, float other, bool odd,
                                        float frequency, int position) {
  const float angle = float(position) * frequency;
  float sine, cosine;
  sincosf(angle, &sine, &cosine);
  return odd ? own * cosine + other * sine : own * cosine - other * sine;
}

} // namespace mega
