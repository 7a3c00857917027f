// SPDX-License-Identifier: Apache-2.0
/// \file
/// Clock stamps to microseconds.

#include "Phases.h"

#include <numeric>

using namespace megalith::bench;

double megalith::bench::measureClock(Gpu &gpu) {
  uint64_t out = gpu.allocate(16);
  std::vector<double> rates;
  for (int i = 0; i < 5; ++i) {
    gpu.launch({"bench_clock", 1, 1, 0, {out, 500000}});
    uint64_t counted[2] = {};
    gpu.download(counted, out, sizeof counted);
    if (counted[1] != 0)
      rates.push_back(double(counted[0]) / double(counted[1]));
  }
  gpu.free(out);
  double rate = median(rates);
  if (rate <= 0)
    throw BenchError("the device's clock does not run");
  return rate;
}

PhaseTable
megalith::bench::tabulate(const std::vector<std::vector<uint32_t>> &stamps,
                          size_t phases, int grid, double gigahertz) {
  auto at = [&](const std::vector<uint32_t> &step, size_t phase, int cta,
                int end) { return step[(phase * grid + cta) * 2 + end]; };
  // Differences modulo 2^32 are right as long as they are below 2 s.
  auto us = [&](uint32_t clocks) { return clocks / gigahertz / 1e3; };
  PhaseTable table;
  table.steps = int(stamps.size());
  table.grid = grid;
  for (size_t p = 0; p < phases; ++p) {
    std::vector<double> work, wait;
    for (int cta = 0; cta < grid; ++cta) {
      std::vector<double> works, waits;
      for (const std::vector<uint32_t> &step : stamps) {
        works.push_back(us(at(step, p, cta, 1) - at(step, p, cta, 0)));
        if (p + 1 < phases)
          waits.push_back(us(at(step, p + 1, cta, 0) - at(step, p, cta, 1)));
      }
      work.push_back(median(works));
      wait.push_back(median(waits));
    }
    auto mean = [](const std::vector<double> &v) {
      return std::accumulate(v.begin(), v.end(), 0.0) / double(v.size());
    };
    table.phases.push_back(
        {spreadOf(work), spreadOf(wait), mean(work), mean(wait)});
  }
  // The step in the middle, by what CTA 0 saw.
  std::vector<size_t> order(stamps.size());
  std::iota(order.begin(), order.end(), size_t(0));
  auto total = [&](size_t s) {
    return at(stamps[s], phases - 1, 0, 1) - at(stamps[s], 0, 0, 0);
  };
  std::sort(order.begin(), order.end(),
            [&](size_t a, size_t b) { return total(a) < total(b); });
  table.stamps = stamps[order[order.size() / 2]];
  return table;
}

PhaseTable megalith::bench::measurePhases(Variant &variant, int64_t context,
                                          int steps, double gigahertz) {
  constexpr int kWarm = 4;
  std::vector<std::vector<uint32_t>> stamps;
  variant.begin(context);
  for (int i = 0; i < kWarm + steps; ++i) {
    if (i == kWarm)
      variant.begin(context);
    variant.step();
    if (i >= kWarm)
      stamps.push_back(variant.stamps());
  }
  PhaseTable table = tabulate(stamps, variant.schedule.phases.size(),
                              variant.running().grid(), gigahertz);
  table.context = context;
  return table;
}
