// SPDX-License-Identifier: Apache-2.0
/// \file
/// One run of several steps from one state.

#include "Case.h"

#include "mega/runtime/RandomInit.h"

#include <chrono>

using namespace llvm;
using namespace mega::run;
using megalith::Tensor;

Expected<CaseOutput> mega::run::runCase(Executor &executor,
                                        const CaseInput &input,
                                        const megalith::Manifest &manifest,
                                        bool wantStates) {
  if (Error error = executor.begin(input.initial.states, input.initial.context))
    return error;
  CaseOutput output;
  for (int64_t step = 0; step < input.steps; ++step) {
    const Tensor &hidden = input.feedOutput && step > 0 ? output.hidden.back()
                                                        : input.hidden[step];
    auto start = std::chrono::steady_clock::now();
    Expected<Tensor> out = executor.step(hidden);
    if (!out)
      return out.takeError();
    std::chrono::duration<double, std::micro> taken =
        std::chrono::steady_clock::now() - start;
    Expected<std::vector<Choice>> choices = executor.choices();
    if (!choices)
      return choices.takeError();
    output.hidden.push_back(*out);
    output.choices.push_back(std::move(*choices));
    output.hostMicroseconds.push_back(taken.count());
  }
  if (wantStates)
    for (const megalith::StateDesc &desc : manifest.states) {
      Expected<Tensor> state = executor.state(desc);
      if (!state)
        return state.takeError();
      output.states.tensors[desc.name] = *state;
    }
  return output;
}

CaseInput mega::run::withNoise(const CaseInput &input) {
  CaseInput noisy = input;
  Tensor &first = noisy.hidden.front();
  std::vector<float> values = valuesOf(first);
  double norm = 0, moved = 0;
  for (float value : values)
    norm += static_cast<double>(value) * value;
  // A bf16 element cannot move by 0.1 %, so a few elements, picked by a linear
  // congruence, move by a whole 1/64 until the vector has moved by 0.1 %.
  uint32_t state = 1;
  for (size_t tries = 0; tries < values.size() && moved < 1e-6 * norm;
       ++tries) {
    state = state * 1664525u + 1013904223u;
    float &value = values[(state >> 8) % values.size()];
    float change = (state & (1u << 7) ? value : -value) / 64;
    value += change;
    moved += static_cast<double>(change) * change;
  }
  first = tensorOf(values, first.dtype, first.shape);
  return noisy;
}

//===----------------------------------------------------------------------===//
// Verdict
//===----------------------------------------------------------------------===//

bool Verdict::sameRouting() const { return !firstDifference(); }

const RoutingDifference *Verdict::firstDifference() const {
  for (const auto &step : routing)
    if (!step.empty())
      return &step.front();
  return nullptr;
}

Distance Verdict::worstHidden() const {
  Distance worst;
  for (const Distance &distance : hidden)
    worsen(worst, distance);
  return worst;
}

std::pair<std::string, Distance> Verdict::worstState() const {
  std::pair<std::string, Distance> worst{"none", {}};
  for (const auto &[name, distance] : states) {
    if (!(distance.relative <= worst.second.relative))
      worst.first = name;
    worsen(worst.second, distance);
  }
  return worst;
}

Verdict mega::run::compare(const CaseOutput &found, const CaseOutput &wanted) {
  Verdict verdict;
  for (auto [a, b] : zip_equal(found.hidden, wanted.hidden))
    verdict.hidden.push_back(distanceOf(a, b));
  for (auto [a, b] : zip_equal(found.choices, wanted.choices))
    verdict.routing.push_back(compareChoices(a, b));
  for (const auto &[name, tensor] : found.states.tensors)
    verdict.states.emplace_back(name,
                                distanceOf(tensor, *wanted.states.find(name)));
  return verdict;
}
