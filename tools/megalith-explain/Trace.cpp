// SPDX-License-Identifier: Apache-2.0
/// \file
/// Spans of CTAs, and the trace made of them.

#include "Formats.h"

#include "llvm/Support/MathExtras.h"

using namespace mega::explain;
namespace json = llvm::json;

std::vector<std::vector<std::pair<double, double>>>
mega::explain::predictedSpans(const Explanation &x) {
  std::vector<std::vector<std::pair<double, double>>> spans;
  double start = 0;
  for (const PhaseInfo &phase : x.phases) {
    auto &row = spans.emplace_back();
    // Tiles lie in equal runs; the fullest CTA takes the whole time.
    int64_t tiles = 0;
    bool even = false; // CTAs that share tiles have all as much
    for (const StageInfo &stage : phase.stages) {
      tiles += stage.tiles;
      even |= stage.split;
    }
    int64_t most = llvm::divideCeil(std::max<int64_t>(tiles, 1), x.ctas);
    for (int64_t cta = 0; cta < x.ctas; ++cta) {
      int64_t own = (cta + 1) * tiles / x.ctas - cta * tiles / x.ctas;
      double share = even ? 1 : std::min(1.0, double(own) / double(most));
      row.push_back(
          {start, start + phase.workUs - phase.sharedUs * (1 - share)});
    }
    start += phase.workUs + phase.syncUs;
  }
  return spans;
}

static std::string nameOf(const PhaseInfo &phase) {
  std::string name;
  for (const StageInfo &stage : phase.stages)
    name += (name.empty() ? "" : "; ") + stage.name;
  return name;
}

/// One process of tracks.
static void
addSpans(const Explanation &x,
         const std::vector<std::vector<std::pair<double, double>>> &spans,
         int64_t process, llvm::StringRef title, json::Array &events) {
  events.push_back(json::Object{{"name", "process_name"},
                                {"ph", "M"},
                                {"pid", process},
                                {"args", json::Object{{"name", title.str()}}}});
  for (auto [phase, row] : llvm::zip_equal(x.phases, spans))
    for (auto [cta, span] : llvm::enumerate(row))
      events.push_back(json::Object{
          {"name", nameOf(phase)},
          {"cat", "phase"},
          {"ph", "X"},
          {"ts", std::round(span.first * 1e3) / 1e3},
          {"dur", std::round((span.second - span.first) * 1e3) / 1e3},
          {"pid", process},
          {"tid", int64_t(cta)},
          {"args", json::Object{{"phase", phase.index},
                                {"weight_bytes", phase.bytes}}}});
}

json::Object mega::explain::traceOf(const Explanation &x) {
  json::Array events;
  addSpans(x, predictedSpans(x), 1, "predicted", events);
  if (x.measured && !x.measured->spans.empty())
    addSpans(x, x.measured->spans, 2, "measured on " + x.measured->device,
             events);
  return json::Object{{"displayTimeUnit", "ns"},
                      {"traceEvents", std::move(events)}};
}
