// SPDX-License-Identifier: Apache-2.0
/// \file
/// The explanation for programs.

#include "Formats.h"

using namespace mega::explain;
namespace json = llvm::json;

/// Two decimals, so that text stays short and does not depend on the last bit.
static double rounded(double us) { return std::round(us * 1000) / 1000; }

static json::Array strings(llvm::ArrayRef<std::string> texts) {
  json::Array array;
  for (const std::string &text : texts)
    array.push_back(text);
  return array;
}

static json::Object phaseJson(const PhaseInfo &phase) {
  json::Array stages;
  for (const StageInfo &stage : phase.stages)
    stages.push_back(
        json::Object{{"name", stage.name},
                     {"location", stage.location},
                     {"tiles", stage.tiles},
                     {"wave_efficiency", rounded(stage.waveEfficiency)},
                     {"split", stage.split}});
  json::Object terms;
  for (auto [term, us] : llvm::zip_equal(mega::costTerms(), phase.termUs))
    if (us != 0)
      terms[term.key] = rounded(us);
  json::Object object{{"index", phase.index},
                      {"stages", std::move(stages)},
                      {"bytes", phase.bytes},
                      {"state_bytes", phase.stateBytes},
                      {"cache_bytes", phase.cacheBytes},
                      {"wave_efficiency", rounded(phase.waveEfficiency)},
                      {"predicted_us", rounded(phase.workUs + phase.syncUs)},
                      {"work_us", rounded(phase.workUs)},
                      {"sync_us", rounded(phase.syncUs)},
                      {"terms_us", std::move(terms)}};
  if (phase.measured)
    object["measured"] =
        json::Object{{"work_us", rounded(phase.measured->workUs)},
                     {"wait_us", rounded(phase.measured->waitUs)},
                     {"max_work_us", rounded(phase.measured->maxWorkUs)}};
  return object;
}

json::Object mega::explain::jsonOf(const Explanation &x) {
  json::Array phases, edges, syncs;
  for (const PhaseInfo &phase : x.phases)
    phases.push_back(phaseJson(phase));
  for (const EdgeInfo &edge : x.edges)
    edges.push_back(json::Object{{"from", edge.from},
                                 {"to", edge.to},
                                 {"resource", edge.resource},
                                 {"kind", edge.kind},
                                 {"type", edge.type},
                                 {"bytes", edge.bytes},
                                 {"from_phase", edge.fromPhase},
                                 {"to_phase", edge.toPhase},
                                 {"producer_location", edge.producerLocation},
                                 {"consumer_location", edge.consumerLocation},
                                 {"covered_by", edge.coveredBy},
                                 {"tight", edge.tight}});
  for (const SyncInfo &sync : x.syncs) {
    json::Array covers;
    for (size_t index : sync.edges)
      covers.push_back(int64_t(index));
    json::Object entry{
        {"kind", sync.kind},
        {"index", sync.index},
        {sync.kind == "barrier" ? "after_phase" : "in_phase", sync.phase},
        {"predicted_us", rounded(sync.predictedUs)},
        {"edges", std::move(covers)},
        {"why", sync.why}};
    if (sync.kind == "counter") {
      entry["stage"] = sync.stage;
      entry["target"] = sync.target;
      entry["count"] = sync.count;
    }
    syncs.push_back(std::move(entry));
  }
  json::Object object{
      {"format", "megalith-explain"},
      {"version", 1},
      {"block", x.block},
      {"arch", x.arch},
      {"machine", x.machine},
      {"calibrated", x.calibrated},
      {"ctas", x.ctas},
      {"context", x.context},
      {"barriers", x.barriers},
      {"counter_waits", x.counterWaits},
      {"lower_bound", x.lowerBound},
      {"lower_bound_chain", strings(x.chain)},
      {"predicted_us", rounded(x.predictedUs)},
      {"launch_us", rounded(x.launchUs)},
      {"roofline_us", rounded(x.rooflineUs)},
      {"bytes_per_step",
       json::Object{{"weights", x.weightBytes},
                    {"state", x.stateBytes},
                    {"cache", x.cacheBytes},
                    {"cache_per_token", x.cacheBytesPerToken},
                    {"total", x.weightBytes + x.stateBytes + x.cacheBytes}}},
      {"phases", std::move(phases)},
      {"edges", std::move(edges)},
      {"syncs", std::move(syncs)}};
  if (x.measured) {
    PredictionError error = *errorOf(x);
    json::Object measured{
        {"file", x.measured->file},
        {"device", x.measured->device},
        {"token_error", std::round(error.token * 1e4) / 1e4},
        {"median_phase_error", std::round(error.medianPhase * 1e4) / 1e4}};
    if (x.measured->tokenUs)
      measured["token_us"] = rounded(*x.measured->tokenUs);
    object["measured"] = std::move(measured);
  }
  return object;
}
