// SPDX-License-Identifier: Apache-2.0
/// \file
/// Loads, times, tabulates.

#include "Measure.h"

#include <algorithm>

using namespace megalith::bench;

/// What the roofline's stream reads: far more than any L2 holds.
static constexpr uint64_t kStreamBytes = uint64_t(1) << 30;

void megalith::bench::measureBundles(
    Gpu &gpu, const Options &options,
    const std::function<void(const Session &)> &report) {
  int64_t rows =
      *std::max_element(options.contexts.begin(), options.contexts.end());
  std::vector<std::unique_ptr<Variant>> variants;
  {
    WeightStore weights(options.seed, options.threads);
    for (const std::string &path : options.bundles) {
      variants.push_back(std::make_unique<Variant>(
          gpu, path, weights, options.seed, rows, options.device));
      variants.back()->expectBatch(options.batch);
    }
  }
  ReadStream stream(gpu, kStreamBytes);
  std::vector<std::vector<StepTimes>> times =
      timeSteps(gpu, variants, options.contexts, options.steps, stream);
  Session run;
  run.device = gpu.facts();
  run.gigahertz = measureClock(gpu);
  run.streamRate = stream.rate();
  run.streamBytes = stream.bytes();
  for (size_t i = 0; i < variants.size(); ++i) {
    Measured measured{variants[i].get(), std::move(times[i]), std::nullopt};
    if (variants[i]->instrumented())
      measured.phases = measurePhases(*variants[i], options.contexts.front(),
                                      options.phaseSteps, run.gigahertz);
    run.bundles.push_back(std::move(measured));
  }
  report(run);
}
