// SPDX-License-Identifier: Apache-2.0
/// \file
/// Times steps in rounds.

#include "Steps.h"

#include <algorithm>
#include <chrono>

using namespace megalith::bench;

/// Steps that follow each other in a round; the launch queue holds them.
static constexpr int kChunk = 16;

/// One visit: `count` steps with events around each, then as many without.
static void visit(Gpu &gpu, Variant &variant, int count, StepTimes &times) {
  variant.begin(times.context);
  for (int i = 0; i < 2; ++i)
    variant.step(); // warm
  std::vector<double> each = gpu.timeEach(count, [&](int) { variant.step(); });
  times.each.insert(times.each.end(), each.begin(), each.end());

  using Clock = std::chrono::steady_clock;
  std::chrono::duration<double, std::micro> host{};
  times.rounds.push_back(gpu.timeAll(count, [&](int) {
    Clock::time_point begin = Clock::now();
    variant.step();
    host += Clock::now() - begin;
  }));
  times.host.push_back(host.count() / count);
}

std::vector<std::vector<StepTimes>> megalith::bench::timeSteps(
    Gpu &gpu, std::vector<std::unique_ptr<Variant>> &variants,
    const std::vector<int64_t> &contexts, int steps, ReadStream &stream) {
  std::vector<std::vector<StepTimes>> times(variants.size());
  for (std::vector<StepTimes> &ofVariant : times)
    for (int64_t context : contexts) {
      ofVariant.emplace_back();
      ofVariant.back().context = context;
    }
  int done = 0;
  for (size_t round = 0; done < steps; ++round) {
    int count = std::min(kChunk, steps - done);
    for (size_t c = 0; c < contexts.size(); ++c)
      for (size_t i = 0; i < variants.size(); ++i) {
        size_t v = (i + round) % variants.size();
        visit(gpu, *variants[v], count, times[v][c]);
      }
    stream.measure(stream.bytes() >> 20);
    done += count;
  }
  for (std::unique_ptr<Variant> &variant : variants)
    variant->checkOutput();
  return times;
}
