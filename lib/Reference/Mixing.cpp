// SPDX-License-Identifier: Apache-2.0
/// \file
/// Ops that mix tokens through fixed-size state, and rotary embedding.

#include "Machine.h"
#include "Parallel.h"

#include "mega/Analysis/Rope.h"

#include <cmath>

using namespace mlir;
using namespace mega;
using namespace mega::reference;

LogicalResult mega::reference::evaluate(ShortConvOp op, Machine &machine) {
  ArrayRef<float> x = machine.get(op.getX());
  StateValue &state = machine.states.find(op.getState())->second;
  std::vector<float> weight = machine.readDense(op.getWeight());
  int64_t channels = x.size(), history = state.shape[0], taps = history + 1;
  const float *w = weight.data() + op.getIndex().value_or(0) * channels * taps;
  std::vector<float> &rows = state.values;
  std::vector<float> y(channels);
  for (int64_t c = 0; c < channels; ++c) {
    float total = 0.0f;
    for (int64_t t = 0; t < history; ++t)
      total += rows[t * channels + c] * w[c * taps + t];
    y[c] = total + x[c] * w[c * taps + history];
  }
  if (history > 0) {
    std::copy(rows.begin() + channels, rows.end(), rows.begin());
    std::copy(x.begin(), x.end(), rows.end() - channels);
  }
  machine.set(op.getResult(), std::move(y));
  return success();
}

/// One head of the delta rule: S (keys x values) is updated in place.
static void updateHead(float *s, const float *q, const float *k, const float *v,
                       float beta, llvm::function_ref<float(int64_t)> decay,
                       int64_t keys, int64_t values, float *out) {
  // Sums over keys in f64, as in Kernels.cpp; the state itself is f32.
  std::vector<double> predicted(values, 0.0), output(values, 0.0);
  std::vector<float> change(values);
  for (int64_t i = 0; i < keys; ++i) {
    float factor = decay(i);
    for (int64_t j = 0; j < values; ++j) {
      s[i * values + j] *= factor;
      predicted[j] += double(k[i]) * double(s[i * values + j]);
    }
  }
  for (int64_t j = 0; j < values; ++j)
    change[j] = v[j] - static_cast<float>(predicted[j]);
  for (int64_t i = 0; i < keys; ++i) {
    addScaled(beta * k[i], change.data(), values, s + i * values);
    for (int64_t j = 0; j < values; ++j)
      output[j] += double(q[i]) * double(s[i * values + j]);
  }
  std::copy(output.begin(), output.end(), out);
}

LogicalResult mega::reference::evaluate(DeltaRuleOp op, Machine &machine) {
  RankedTensorType kType = tensorTypeOf(op.getK());
  int64_t heads = kType.getDimSize(0), keys = kType.getDimSize(1);
  int64_t values = tensorTypeOf(op.getV()).getDimSize(1);
  const float *q = machine.get(op.getQ()).data();
  const float *k = machine.get(op.getK()).data();
  const float *v = machine.get(op.getV()).data();
  const float *beta = machine.get(op.getBeta()).data();
  const float *decay =
      op.getDecay() ? machine.get(op.getDecay()).data() : nullptr;
  float *s = machine.states.find(op.getState())->second.values.data();
  DecayKind kind = op.getKind();
  std::vector<float> out(heads * values);
  parallelFor(heads, machine.threads, [&](int64_t h) {
    auto factor = [&](int64_t i) {
      switch (kind) {
      case DecayKind::None:
        return 1.0f;
      case DecayKind::Head:
        return decay[h];
      case DecayKind::Channel:
        return decay[h * keys + i];
      }
      llvm_unreachable("unknown decay kind");
    };
    updateHead(s + h * keys * values, q + h * keys, k + h * keys,
               v + h * values, beta[h], factor, keys, values,
               out.data() + h * values);
  });
  machine.set(op.getResult(), std::move(out));
  return success();
}

LogicalResult mega::reference::evaluate(RopeOp op, Machine &machine) {
  std::vector<float> x = machine.get(op.getX()).vec();
  if (op.getKind() != RopeKind::None) {
    bool interleaved = op.getKind() == RopeKind::Interleaved;
    int64_t last = tensorTypeOf(op.getX()).getShape().back();
    int64_t size = op.getSize(), half = size / 2;
    std::vector<float> inverse =
        ropeInverseFrequencies(size, op.getTheta().convertToDouble());
    for (int64_t i = 0; i < half; ++i) {
      double angle = static_cast<float>(machine.position) * inverse[i];
      auto cosine = static_cast<float>(std::cos(angle));
      auto sine = static_cast<float>(std::sin(angle));
      int64_t first = op.getOffset() + (interleaved ? 2 * i : i);
      int64_t second = first + (interleaved ? 1 : half);
      for (size_t row = 0; row < x.size(); row += last) {
        float a = x[row + first], b = x[row + second];
        x[row + first] = a * cosine - b * sine;
        x[row + second] = b * cosine + a * sine;
      }
    }
  }
  machine.set(op.getResult(), std::move(x));
  return success();
}
