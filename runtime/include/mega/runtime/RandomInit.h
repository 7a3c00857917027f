// SPDX-License-Identifier: Apache-2.0
//
// Deterministic test data: weights, states and tokens from (seed, name,
// element index) alone. The same call gives the same bytes whatever the thread
// count and the platform: random words come from a counter-based integer hash,
// normals from a table built with IEEE +, -, *, / only (no libm), and the
// source is compiled without contraction into fused multiply-adds.
//
// "Normal" below is the standard normal with its tails cut at 4 sigma: an
// inverse CDF sampled at 4096 equal probabilities, linear in between.

#ifndef MEGA_RUNTIME_RANDOMINIT_H
#define MEGA_RUNTIME_RANDOMINIT_H

#include "mega/runtime/Manifest.h"
#include "mega/runtime/Status.h"
#include "mega/runtime/TensorMap.h"

#include <cstdint>
#include <string>
#include <vector>

namespace megalith {

/// The three tensors of a quantised weight, as QuantView describes them.
struct RandomQuant {
  Tensor codes;
  Tensor scales;
  Tensor zeros;
};

/// How large random weights are.
enum class Spread {
  /// The deviations below, whatever the width, as some checkpoints are
  /// initialised. In a narrow block a projection then gives next to nothing.
  Fixed,
  /// 1 / sqrt(inputs) in place of 0.02: a normed vector gives outputs of order
  /// one whatever the width, so that every weight moves what reads it.
  Balanced,
};

/// A quantised weight of shape [inputs, outputs] or [experts, inputs,
/// outputs]: w = normal * 0.02 in f32, and per group of `group` inputs and
/// output, in f32 with rounding half to even,
///   scale = max(max - min, 1e-8) / 15
///   zero  = clip(round(-min / scale), 0, 15)
///   code  = clip(round(w / scale + zero), 0, 15)
/// and then scale and zero rounded to bf16. `threads` 0 means all cores.
/// INVALID_ARGUMENT unless inputs is a multiple of group and group is even.
Result<RandomQuant> randomQuant(uint64_t seed, const std::string &name,
                                const std::vector<int64_t> &shape,
                                int64_t group, unsigned threads = 0,
                                Spread spread = Spread::Fixed);

/// A dense weight, BF16 or F32: rank 1 is all ones (a norm's gain); otherwise
/// normal * denseDeviation(shape, spread).
Result<Tensor> randomDense(uint64_t seed, const std::string &name, DType dtype,
                           const std::vector<int64_t> &shape,
                           Spread spread = Spread::Fixed);

/// Standard deviation of a dense weight of rank 2 or more: 0.02, or balanced
/// over the last dimension, which is the inputs'. A heuristic stands for knowing
/// the op: rank 3 with at most 8 in the last dimension is taken for depthwise
/// convolution taps, 0.1; larger ones make keys so long that a delta rule's
/// state grows without bound.
double denseDeviation(const std::vector<int64_t> &shape,
                      Spread spread = Spread::Fixed);

/// A state: normal * 0.05 for F32, normal * 0.1 for BF16. Give a cache's
/// number of rows as shape[0]: its rows do not depend on how many there are.
Result<Tensor> randomState(uint64_t seed, const std::string &name, DType dtype,
                           const std::vector<int64_t> &shape);

/// A hidden vector, BF16 or F32: normal * 0.25. `name` tells tokens apart.
Result<Tensor> randomToken(uint64_t seed, const std::string &name, DType dtype,
                           const std::vector<int64_t> &shape);

/// Every weight tensor of a manifest, under the manifest's tensor names; each
/// weight is generated under its own weight name.
Result<TensorMap> randomWeights(const Manifest &manifest, uint64_t seed,
                                unsigned threads = 0,
                                Spread spread = Spread::Fixed);

/// Every state of a manifest, caches with `rows` rows.
Result<TensorMap> randomStates(const Manifest &manifest, uint64_t seed,
                               int64_t rows);

} // namespace megalith

#endif
