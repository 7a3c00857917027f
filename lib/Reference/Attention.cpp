// SPDX-License-Identifier: Apache-2.0
/// \file
/// Caches and latent attention, without absorption: every cached row is
/// expanded to keys and values, rounded to bf16, head by head.

#include "Machine.h"
#include "Parallel.h"

#include <cmath>

using namespace mlir;
using namespace mega;
using namespace mega::reference;

LogicalResult mega::reference::evaluate(CacheAppendOp op, Machine &machine) {
  ArrayRef<float> x = machine.get(op.getX());
  StateValue &state = machine.states.find(op.getState())->second;
  state.shape[0] = machine.position + 1;
  state.values.resize(numElements(state.shape));
  std::copy(x.begin(), x.end(), state.values.end() - x.size());
  return success();
}

namespace {

/// Rows of a cache that one work item takes.
constexpr int64_t kChunk = 64;

/// One head of latent attention.
struct Head {
  const QuantMatrix &weight;
  /// First column of the head in the weight.
  int64_t column;
  /// Sizes: latent row, key part, rotary part, value part, cached rows.
  int64_t latentSize, keys, rotary, values, rows;
  const float *latent, *rope, *q;
  float scale;
  unsigned threads;
  /// Whether a cached row's keys and values are rounded to bf16: always, but
  /// for an absorbed op whose relaxation is honoured.
  bool rounded;

  int64_t width() const { return keys + values; }
  int64_t panels() const { return llvm::divideCeil(width(), kPanel); }
  int64_t chunks() const { return llvm::divideCeil(rows, kChunk); }

  void attend(float *out) const;
  std::vector<float> dequantise() const;
  void expandChunk(ArrayRef<float> weights, int64_t chunk, float *scores,
                   float *v) const;
};

} // namespace

/// The head's columns of the weight, panel by panel.
std::vector<float> Head::dequantise() const {
  std::vector<float> slab(panels() * latentSize * kPanel);
  parallelFor(panels(), threads, [&](int64_t panel) {
    int64_t first = panel * kPanel;
    dequantisePanel(weight, column + first, std::min(kPanel, width() - first),
                    slab.data() + first * latentSize);
  });
  return slab;
}

/// Scores and values of one chunk of cached rows.
void Head::expandChunk(ArrayRef<float> slab, int64_t chunk, float *scores,
                       float *v) const {
  int64_t begin = chunk * kChunk, count = std::min(kChunk, rows - begin);
  int64_t stride = panels() * kPanel;
  std::vector<float> kv(count * stride);
  for (int64_t panel = 0; panel < panels(); ++panel)
    multiplyPanel(latent + begin * latentSize, count, latentSize,
                  slab.data() + panel * kPanel * latentSize,
                  kv.data() + panel * kPanel, stride);
  if (rounded)
    for (float &value : kv)
      value = roundToBf16(value);
  for (int64_t l = 0; l < count; ++l) {
    const float *row = kv.data() + l * stride;
    float content = dot(q, row, keys);
    float position = dot(q + keys, rope + (begin + l) * rotary, rotary);
    scores[begin + l] = (content + position) * scale;
    std::copy(row + keys, row + width(), v + (begin + l) * values);
  }
}

/// Turns scores into probabilities.
static void softmax(MutableArrayRef<float> scores) {
  float top = *std::max_element(scores.begin(), scores.end());
  for (float &score : scores)
    score = static_cast<float>(std::exp(static_cast<double>(score - top)));
  float total = sum(scores.data(), scores.size());
  for (float &score : scores)
    score /= total;
}

void Head::attend(float *out) const {
  std::vector<float> slab = dequantise();
  std::vector<float> scores(rows), v(rows * values);
  parallelFor(chunks(), threads, [&](int64_t chunk) {
    expandChunk(slab, chunk, scores.data(), v.data());
  });
  softmax(scores);
  std::vector<float> partial(chunks() * values, 0.0f);
  parallelFor(chunks(), threads, [&](int64_t chunk) {
    for (int64_t l = chunk * kChunk; l < std::min(rows, (chunk + 1) * kChunk);
         ++l)
      addScaled(scores[l], v.data() + l * values, values,
                partial.data() + chunk * values);
  });
  std::fill(out, out + values, 0.0f);
  for (int64_t chunk = 0; chunk < chunks(); ++chunk)
    addScaled(1.0f, partial.data() + chunk * values, values, out);
}

LogicalResult mega::reference::evaluate(LatentAttentionOp op,
                                        Machine &machine) {
  const StateValue &latent = machine.states.find(op.getLatent())->second;
  const StateValue &rope = machine.states.find(op.getRope())->second;
  int64_t rows = machine.position + 1;
  for (auto [name, state] :
       {std::pair(op.getLatent(), &latent), std::pair(op.getRope(), &rope)})
    if (state->shape[0] != rows)
      return op.emitOpError("reads state @")
             << name << " of " << state->shape[0]
             << " rows, expected the new one appended: " << rows;
  RankedTensorType qType = tensorTypeOf(op.getQ());
  int64_t heads = qType.getDimSize(0), qSize = qType.getDimSize(1);
  int64_t values = tensorTypeOf(op.getResult()).getDimSize(1);
  int64_t rotary = rope.shape[1], keys = qSize - rotary;
  ArrayRef<float> q = machine.get(op.getQ());
  std::vector<float> out(heads * values);
  for (int64_t h = 0; h < heads; ++h) {
    Head head{machine.quantised.find(op.getWeight())->second.front(),
              h * (keys + values),
              latent.shape[1],
              keys,
              rotary,
              values,
              rows,
              latent.values.data(),
              rope.values.data(),
              q.data() + h * qSize,
              static_cast<float>(op.getScale().convertToDouble()),
              machine.threads,
              !(op.getAbsorb() && machine.honourRelaxations)};
    head.attend(out.data() + h * values);
  }
  machine.set(op.getResult(), std::move(out));
  return success();
}
