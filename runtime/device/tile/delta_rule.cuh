// SPDX-License-Identifier: Apache-2.0
/// \file
/// One step of the gated delta rule for a strip of value columns of one head.

namespace mega {

enum class Decay { None, Head, Channel };

template <int kThreads, int kKeys, int kStrip> struct DeltaScratch {
  double predicted[kThreads / kStrip][kStrip];
  double output[kThreads / kStrip][kStrip];
  double q[kKeys], k[kKeys];
  float decay[kKeys];
};

/// `state` points at S[head][0][first column]; rows are kValues apart. Thread
/// (r, j) with j < kStrip keeps rows r, r + R, ... of column j in registers, so
/// S is read once and written once. `ready()` is called once those loads are on
/// their way and before anything else is read. Sums over keys are f64: their
/// order must not show where the output is rounded. `sink(j, o)` gets each
/// column's output. Order of operations: Gated Delta Networks, equation 10, as
/// mega.delta_rule documents it. Calls that follow one another need a CTA
/// barrier between them.
template <int kThreads, int kKeys, int kValues, int kStrip, Decay kDecay,
          typename Ready, typename Q, typename K, typename V, typename Beta,
          typename D, typename Sink>
__device__ __forceinline__ void
deltaRule(float *state, const Ready &ready, const Q &q, const K &k, const V &v,
          const Beta &beta, const D &decay,
          DeltaScratch<kThreads, kKeys, kStrip> &scratch, const Sink &sink) {
  constexpr int kLanes = kThreads / kStrip;
  constexpr int kOwn = (kKeys + kLanes - 1) / kLanes;
  const int j = threadIdx.x % kStrip, r = threadIdx.x / kStrip;
  float s[kOwn];
#pragma unroll
  for (int i = 0; i < kOwn; ++i) {
    const int row = r + i * kLanes;
    s[i] = row < kKeys ? state[row * kValues + j] : 0.0f;
  }
  ready();
  // All are asked for before the first is used.
  constexpr int kOwnKeys = (kKeys + kThreads - 1) / kThreads;
  float qs[kOwnKeys] = {}, ks[kOwnKeys] = {}, decays[kOwnKeys] = {};
#pragma unroll
  for (int n = 0; n < kOwnKeys; ++n) {
    const int i = n * kThreads + threadIdx.x;
    if (i < kKeys) {
      qs[n] = q(i);
      ks[n] = k(i);
      decays[n] = kDecay == Decay::Channel ? decay(i) : 1.0f;
    }
  }
  const float value = v(j), strength = beta();
#pragma unroll
  for (int n = 0; n < kOwnKeys; ++n) {
    const int i = n * kThreads + threadIdx.x;
    if (i < kKeys) {
      scratch.q[i] = qs[n];
      scratch.k[i] = ks[n];
      if (kDecay == Decay::Channel)
        scratch.decay[i] = decays[n];
    }
  }
  const float headDecay = kDecay == Decay::Head ? decay(0) : 1.0f;
  __syncthreads();
  double predicted = 0;
#pragma unroll
  for (int i = 0; i < kOwn; ++i) {
    const int row = r + i * kLanes;
    if (row < kKeys) {
      if (kDecay == Decay::Channel)
        s[i] *= scratch.decay[row];
      else if (kDecay == Decay::Head)
        s[i] *= headDecay;
      predicted = fma(double(s[i]), scratch.k[row], predicted);
    }
  }
  scratch.predicted[r][j] = predicted;
  __syncthreads();
  predicted = sumOf<kLanes, kStrip>(&scratch.predicted[0][j]);
  const float error = value - float(predicted);
  double output = 0;
#pragma unroll
  for (int i = 0; i < kOwn; ++i) {
    const int row = r + i * kLanes;
    if (row < kKeys) {
      // Two roundings, as the recurrence is written.
      s[i] =
          __fadd_rn(s[i], __fmul_rn(strength * float(scratch.k[row]), error));
      state[row * kValues + j] = s[i];
      output = fma(double(s[i]), scratch.q[row], output);
    }
  }
  scratch.output[r][j] = output;
  __syncthreads();
  if (r == 0)
    sink(j, float(sumOf<kLanes, kStrip>(&scratch.output[0][j])));
}

} // namespace mega
