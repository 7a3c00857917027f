// SPDX-License-Identifier: Apache-2.0
/// \file
/// Writes results.

#include "Report.h"

#include <fmt/format.h>

using namespace megalith::bench;
using json = nlohmann::ordered_json;

namespace {

/// What a table says about one bundle at one context.
struct Row {
  double us, min, median, p99, host;
  double rooflineUs, percent;
  int64_t bytes;
};

Row rowOf(const Session &run, const Measured &measured,
          const StepTimes &times) {
  Row row;
  row.us = median(times.rounds);
  row.min = quantile(times.each, 0);
  row.median = median(times.each);
  row.p99 = quantile(times.each, 0.99);
  row.host = median(times.host);
  row.bytes = measured.variant->schedule.bytes(times.context);
  row.rooflineUs =
      run.streamRate > 0 ? double(row.bytes) / run.streamRate / 1e3 : 0;
  row.percent = row.us > 0 ? 100 * row.rooflineUs / row.us : 0;
  return row;
}

std::string stagesOf(const Variant &variant, size_t phase) {
  std::string text;
  for (const std::string &stage : variant.schedule.phases[phase].stages)
    text += (text.empty() ? "" : "; ") + stage;
  return text;
}

void addPhases(std::string &text, const Measured &measured) {
  const PhaseTable &table = *measured.phases;
  text += fmt::format(
      "\n{}: phases at context {}, us over {} CTAs, medians of {} steps\n"
      "phase | MB    | work: min, median, max | wait after: min, median, max | "
      "stages\n",
      measured.variant->path, table.context, table.grid, table.steps);
  double work = 0, wait = 0, least = 0;
  for (size_t p = 0; p < table.phases.size(); ++p) {
    const PhaseTimes &phase = table.phases[p];
    bool last = p + 1 == table.phases.size();
    text += fmt::format(
        "{:5} | {:5.2f} | {:6.2f} {:6.2f} {:6.2f}   | {:<28} | {}\n", p,
        measured.variant->schedule.phases[p].bytes / 1e6, phase.work.min,
        phase.work.median, phase.work.max,
        last ? "-"
             : fmt::format("{:6.2f} {:6.2f} {:6.2f}", phase.wait.min,
                           phase.wait.median, phase.wait.max),
        stagesOf(*measured.variant, p));
    work += phase.meanWork;
    wait += phase.meanWait;
    least += phase.wait.min;
  }
  text += fmt::format("mean over CTAs: work {:.1f} us, waiting {:.1f} us, of "
                      "that {:.1f} us if all arrived together\n",
                      work, wait, least);
}

json spreadJson(const Spread &spread, double mean) {
  return {{"min", spread.min},
          {"median", spread.median},
          {"max", spread.max},
          {"mean", mean}};
}

json phasesJson(const Measured &measured) {
  const PhaseTable &table = *measured.phases;
  json phases = json::array();
  for (size_t p = 0; p < table.phases.size(); ++p) {
    const PhaseTimes &phase = table.phases[p];
    json entry = {{"index", p},
                  {"stages", measured.variant->schedule.phases[p].stages},
                  {"bytes", measured.variant->schedule.phases[p].bytes},
                  {"work_us", spreadJson(phase.work, phase.meanWork)}};
    entry["wait_us"] = p + 1 == table.phases.size()
                           ? json(nullptr)
                           : spreadJson(phase.wait, phase.meanWait);
    phases.push_back(std::move(entry));
  }
  // [phase][cta][begin, end], in clocks from the CTA's first begin.
  json clocks = json::array();
  for (size_t p = 0; p < table.phases.size(); ++p) {
    json row = json::array();
    for (int cta = 0; cta < table.grid; ++cta) {
      uint32_t first = table.stamps[size_t(cta) * 2];
      const uint32_t *pair = &table.stamps[(p * table.grid + cta) * 2];
      row.push_back({uint32_t(pair[0] - first), uint32_t(pair[1] - first)});
    }
    clocks.push_back(std::move(row));
  }
  return {{"context", table.context},
          {"steps", table.steps},
          {"ctas", table.grid},
          {"phases", std::move(phases)},
          {"clocks", std::move(clocks)}};
}

} // namespace

std::string megalith::bench::textOf(const Session &run) {
  std::string text = fmt::format(
      "device: {} ({}, {} SMs, {:.2f} GHz, CUDA {}.{})\n"
      "read stream: {:.0f} GB/s over {} MiB, measured between the steps\n\n"
      "us: back to back, median of rounds; step: events around each step\n"
      "context |     us | step: min, median, p99 | host us |     MB | roofline "
      "us | % of it | bundle\n",
      run.device.name, run.device.arch, run.device.sms, run.gigahertz,
      run.device.driver / 1000, run.device.driver % 1000 / 10, run.streamRate,
      run.streamBytes >> 20);
  size_t contexts = run.bundles.empty() ? 0 : run.bundles.front().times.size();
  for (size_t c = 0; c < contexts; ++c)
    for (const Measured &measured : run.bundles) {
      const StepTimes &times = measured.times[c];
      Row row = rowOf(run, measured, times);
      text += fmt::format(
          "{:7} | {:6.1f} | {:6.1f} {:6.1f} {:6.1f}   | {:7.1f} "
          "| {:6.1f} | {:11.1f} | {:7.1f} | {}{}\n",
          times.context, row.us, row.min, row.median, row.p99, row.host,
          row.bytes / 1e6, row.rooflineUs, row.percent, measured.variant->path,
          measured.phases ? " (instrumented)" : "");
    }
  for (const Measured &measured : run.bundles)
    if (measured.phases)
      addPhases(text, measured);
  return text;
}

json megalith::bench::jsonOf(const Session &run) {
  json bundles = json::array();
  for (const Measured &measured : run.bundles) {
    json contexts = json::array();
    for (const StepTimes &times : measured.times) {
      Row row = rowOf(run, measured, times);
      contexts.push_back(
          {{"context", times.context},
           {"steps", times.each.size()},
           {"us", row.us},
           {"step_us",
            {{"min", row.min}, {"median", row.median}, {"p99", row.p99}}},
           {"host_us", row.host},
           {"bytes", row.bytes},
           {"roofline_us", row.rooflineUs},
           {"roofline_percent", row.percent}});
    }
    json entry = {{"bundle", measured.variant->path},
                  {"block", measured.variant->manifest().block},
                  {"arch", measured.variant->running().arch()},
                  {"ctas", measured.variant->running().grid()},
                  {"barriers", measured.variant->schedule.barriers},
                  {"instrumented", measured.phases.has_value()},
                  {"contexts", std::move(contexts)}};
    if (measured.phases)
      entry["phase_table"] = phasesJson(measured);
    bundles.push_back(std::move(entry));
  }
  return {
      {"format", "megalith-bench"},
      {"version", 1},
      {"device",
       {{"name", run.device.name},
        {"arch", run.device.arch},
        {"sms", run.device.sms},
        {"clock_ghz", run.gigahertz},
        {"driver", run.device.driver}}},
      {"stream", {{"gbps", run.streamRate}, {"mib", run.streamBytes >> 20}}},
      {"bundles", std::move(bundles)}};
}
