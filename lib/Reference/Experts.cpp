// SPDX-License-Identifier: Apache-2.0
/// \file
/// Router and experts.

#include "Machine.h"
#include "Parallel.h"

#include <cmath>
#include <limits>

using namespace mlir;
using namespace mega;
using namespace mega::reference;

//===----------------------------------------------------------------------===//
// Router
//===----------------------------------------------------------------------===//

/// exp, evaluated in f64.
static float expOf(float x) {
  return static_cast<float>(std::exp(static_cast<double>(x)));
}

/// The f32 scores of `logits`.
static std::vector<float> scoresOf(ScoreKind kind, ArrayRef<float> logits) {
  std::vector<float> scores(logits.size());
  if (kind == ScoreKind::Sigmoid) {
    for (auto [score, logit] : llvm::zip_equal(scores, logits))
      score = 1.0f / (1.0f + expOf(-logit));
    return scores;
  }
  float top = *std::max_element(logits.begin(), logits.end());
  for (auto [score, logit] : llvm::zip_equal(scores, logits))
    score = expOf(logit - top);
  float total = sum(scores.data(), scores.size());
  for (float &score : scores)
    score /= total;
  return scores;
}

/// The `count` largest entries, largest first, ties to the lower index. Always
/// distinct indices, whatever the values (NaN included).
static std::vector<int32_t> topOf(ArrayRef<float> values, int64_t count) {
  std::vector<int32_t> chosen;
  std::vector<bool> taken(values.size(), false);
  for (int64_t j = 0; j < count; ++j) {
    int32_t best = -1;
    for (size_t e = 0; e < values.size(); ++e)
      if (!taken[e] && (best < 0 || values[e] > values[best]))
        best = e;
    taken[best] = true;
    chosen.push_back(best);
  }
  return chosen;
}

/// Adds the op's probe to the machine's; `ids` ends with the runner-up if
/// there is one.
static void recordProbe(RouterOp op, ArrayRef<float> logits,
                        ArrayRef<int32_t> ids, int64_t count,
                        Machine &machine) {
  if (!op.getProbe())
    return;
  RouterProbe probe;
  probe.name = op.getProbe()->str();
  probe.ids = ids.take_front(count).vec();
  probe.logits = logits.vec();
  probe.gap = std::numeric_limits<float>::infinity();
  if (static_cast<int64_t>(ids.size()) > count) {
    probe.runnerUp = ids[count];
    probe.gap = logits[ids[count - 1]] - logits[ids[count]];
  }
  machine.probes.push_back(std::move(probe));
}

LogicalResult mega::reference::evaluate(RouterOp op, Machine &machine) {
  ArrayRef<float> logits = machine.get(op.getLogits());
  std::vector<float> scores = scoresOf(op.getScore(), logits);
  std::vector<float> steered = scores;
  if (op.getBias())
    for (auto [score, bias] :
         llvm::zip_equal(steered, machine.readDense(*op.getBias())))
      score += bias;
  int64_t count = tensorTypeOf(op.getIds()).getNumElements();
  int64_t ranked = std::min<int64_t>(count + 1, logits.size());
  std::vector<int32_t> ids = topOf(steered, ranked);
  recordProbe(op, logits, ids, count, machine);
  ids.resize(count);

  std::vector<float> weights;
  for (int32_t id : ids)
    weights.push_back(scores[id]);
  if (op.getRenormalize()) {
    float total = 0.0f;
    for (float weight : weights)
      total += weight;
    total += static_cast<float>(op.getRenormalize()->convertToDouble());
    for (float &weight : weights)
      weight /= total;
  }
  for (float &weight : weights)
    weight *= static_cast<float>(op.getScale().convertToDouble());
  machine.setIds(op.getIds(), std::move(ids));
  machine.set(op.getWeights(), std::move(weights));
  return success();
}

//===----------------------------------------------------------------------===//
// Experts
//===----------------------------------------------------------------------===//

namespace {
/// One expert's matrices and its weight in the sum.
struct Expert {
  const QuantMatrix &gate, &up, &down;
  float weight;
};
} // namespace

/// The chosen experts in order, then the shared ones with weight 1.
static std::vector<Expert> chosenExperts(ExpertsOp op, Machine &machine) {
  std::vector<Expert> experts;
  auto add = [&](StringRef gate, StringRef up, StringRef down, int64_t index,
                 float weight) {
    auto matrix = [&](StringRef name) -> const QuantMatrix & {
      return machine.quantised.find(name)->second[index];
    };
    experts.push_back({matrix(gate), matrix(up), matrix(down), weight});
  };
  for (auto [id, weight] : llvm::zip_equal(machine.getIds(op.getIds()),
                                           machine.get(op.getWeights())))
    add(op.getGate(), op.getUp(), op.getDown(), id, weight);
  if (op.getSharedGate()) {
    int64_t shared = machine.quantised.find(*op.getSharedGate())->second.size();
    for (int64_t i = 0; i < shared; ++i)
      add(*op.getSharedGate(), *op.getSharedUp(), *op.getSharedDown(), i, 1.0f);
  }
  return experts;
}

LogicalResult mega::reference::evaluate(ExpertsOp op, Machine &machine) {
  ArrayRef<float> x = machine.get(op.getX());
  int64_t stack = machine.quantised.find(op.getGate())->second.size();
  for (int32_t id : machine.getIds(op.getIds()))
    if (id >= stack)
      return op.emitOpError("takes expert ")
             << id << ", expected one below the " << stack << " of weight @"
             << op.getGate();
  std::vector<Expert> experts = chosenExperts(op, machine);
  const ScalarProgram &activation = machine.programs.find(op)->second;
  std::vector<float> y(tensorTypeOf(op.getResult()).getNumElements(), 0.0f);
  if (!experts.empty()) {
    int64_t inner = experts.front().gate.outputs, outer = y.size();
    int64_t blocks = llvm::divideCeil(inner, kColumns);
    std::vector<float> hidden(experts.size() * inner);
    parallelFor(experts.size() * blocks, machine.threads, [&](int64_t item) {
      const Expert &expert = experts[item / blocks];
      int64_t column = item % blocks * kColumns;
      int64_t count = std::min(kColumns, inner - column);
      float gate[kColumns], up[kColumns];
      multiply(expert.gate, x.data(), column, count, gate);
      multiply(expert.up, x.data(), column, count, up);
      activation.run({gate, up}, count,
                     hidden.data() + item / blocks * inner + column);
    });
    parallelFor(llvm::divideCeil(outer, kColumns), machine.threads,
                [&](int64_t block) {
                  int64_t column = block * kColumns;
                  int64_t count = std::min(kColumns, outer - column);
                  float part[kColumns];
                  // In f64, as every sum that is rounded next (Kernels.cpp).
                  double total[kColumns] = {};
                  for (auto [j, expert] : llvm::enumerate(experts)) {
                    multiply(expert.down, hidden.data() + j * inner, column,
                             count, part);
                    for (int64_t n = 0; n < count; ++n)
                      total[n] += double(expert.weight) * double(part[n]);
                  }
                  std::copy(total, total + count, &y[column]);
                });
  }
  machine.set(op.getResult(), std::move(y));
  return success();
}
