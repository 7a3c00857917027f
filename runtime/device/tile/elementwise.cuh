// SPDX-License-Identifier: Apache-2.0
/// \file
/// Tile-local ops that touch state or position: short convolution and rotary
/// embedding.

namespace mega {

/// e^x, within 0.65 units in the last place and mostly the nearest number: an
/// error shows wherever the result
/// is rounded to bf16 near a tie, and may then change which experts are chosen.
/// x = n ln 2 + r with ln 2 in two parts (the first times n is exact), e^r by
/// its series, and the last addition the only one that rounds at full size
/// (Cody and Waite, 1980). f64 would take five times as long.
__device__ __forceinline__ float exponential(float x) {
  const float clamped = fminf(fmaxf(x, -105.0f), 90.0f);
  const float n = rintf(clamped * 1.44269502f);
  const float high = fmaf(n, -0.693145752f, clamped);
  const float r = fmaf(n, -1.42860677e-6f, high);
  const float lost = fmaf(n, -1.42860677e-6f, high - r);
  float series = fmaf(r, 2.48015876e-5f, 1.98412701e-4f);
  series = fmaf(series, r, 1.38888892e-3f);
  series = fmaf(series, r, 8.33333377e-3f);
  series = fmaf(series, r, 4.16666679e-2f);
  series = fmaf(series, r, 0.166666672f);
  series = fmaf(series, r, 0.5f);
  const float rest = fmaf(r * r, series, lost);
  const float sum = 1.0f + r;
  const float value = sum + ((r - (sum - 1.0f)) + rest);
  // Two factors, since 2^n alone may overflow or lose bits.
  const int half = int(n) / 2, other = int(n) - half;
  const float scaled = value * __int_as_float((half + 127) << 23) *
                       __int_as_float((other + 127) << 23);
  return x != x ? x : scaled;
}

/// The larger and the smaller of two values; NaN if either is, as
/// arith.maximumf and arith.minimumf ask.
__device__ __forceinline__ float maximum(float a, float b) {
  return a != a ? a : b != b ? b : fmaxf(a, b);
}
__device__ __forceinline__ float minimum(float a, float b) {
  return a != a ? a : b != b ? b : fminf(a, b);
}

/// A channel's weights of a convolution, as they lie in memory: what is loaded
/// long before it is used is not unpacked at once, which would wait for it.
template <int kTaps, bool kFours = kTaps % 4 == 0> struct ConvFactors {
  u16 words[kTaps];
  __device__ __forceinline__ void load(const u16 *taps) {
#pragma unroll
    for (int t = 0; t < kTaps; ++t)
      words[t] = loadConstantBf16(taps + t);
  }
  __device__ __forceinline__ float at(int t) const {
    return bf16ToFloat(words[t]);
  }
};
template <int kTaps> struct ConvFactors<kTaps, true> {
  uint2 fours[kTaps / 4];
  __device__ __forceinline__ void load(const u16 *taps) {
#pragma unroll
    for (int t = 0; t < kTaps / 4; ++t)
      fours[t] = loadConstant8(taps + 4 * t);
  }
  __device__ __forceinline__ float at(int t) const {
    const u32 pair = t % 4 < 2 ? fours[t / 4].x : fours[t / 4].y;
    return __uint_as_float(t % 2 == 0 ? pair << 16 : pair & 0xffff0000u);
  }
};

/// What one channel of a causal convolution reads: the last kTaps - 1 inputs,
/// oldest first, and its weights.
template <int kTaps> struct ConvWindow {
  u16 row[kTaps - 1];
  ConvFactors<kTaps> factors;

  /// `state` has kTaps - 1 rows of kChannels; `taps` the weights, channel by
  /// channel.
  template <int kChannels>
  __device__ __forceinline__ void load(const u16 *state, const u16 *taps,
                                       int channel) {
#pragma unroll
    for (int t = 0; t + 1 < kTaps; ++t)
      row[t] = state[t * kChannels + channel];
    factors.load(taps + channel * kTaps);
  }

  /// The convolution with the newest input `x`. Shifts the state in place; the
  /// caller owns the channel.
  template <int kChannels>
  __device__ __forceinline__ float apply(u16 *state, int channel,
                                         float x) const {
    float sum = 0;
#pragma unroll
    for (int t = 0; t < kTaps; ++t)
      sum = fmaf(t + 1 < kTaps ? bf16ToFloat(row[t]) : x, factors.at(t), sum);
#pragma unroll
    for (int t = 0; t + 1 < kTaps; ++t)
      state[t * kChannels + channel] =
          t + 2 < kTaps ? row[t + 1] : floatToBf16(x);
    return sum;
  }
};

/// Sine and cosine of a non-negative angle. One step of range reduction in f64
/// keeps full f32 accuracy far beyond any context length and, unlike sincosf,
/// needs no table in local memory. Polynomials: Cephes sinf and cosf.
__device__ __forceinline__ void sineCosine(float angle, float &sine,
                                           float &cosine) {
  const double quarters = rint(double(angle) * 0.63661977236758134);
  const float r = float(fma(quarters, -1.5707963267948966, double(angle)));
  const int quadrant = int(quarters) & 3;
  const float z = r * r;
  const float s = fmaf(
      fmaf(fmaf(-1.9515295891e-4f, z, 8.3321608736e-3f), z, -1.6666654611e-1f) *
          z,
      r, r);
  const float c =
      fmaf(fmaf(fmaf(2.443315711809948e-5f, z, -1.388731625493765e-3f), z,
                4.166664568298827e-2f) *
               z,
           z, fmaf(-0.5f, z, 1.0f));
  sine = quadrant & 1 ? c : s;
  cosine = quadrant & 1 ? s : c;
  if (quadrant & 2)
    sine = -sine;
  if ((quadrant + 1) & 2)
    cosine = -cosine;
}

/// Element of a rotated pair: `own` and `other` are its members, `odd` says
/// which one is asked for (RoFormer, equation 34).
__device__ __forceinline__ float rotate(float own, float other, bool odd,
                                        float frequency, int position) {
  const float angle = float(position) * frequency;
  float sine, cosine;
  sineCosine(angle, sine, cosine);
  return odd ? own * cosine + other * sine : own * cosine - other * sine;
}

} // namespace mega
