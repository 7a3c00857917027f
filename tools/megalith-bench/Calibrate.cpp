// SPDX-License-Identifier: Apache-2.0
/// \file
/// Streams, edges, flags and launches.

#include "Calibrate.h"

#include "Phases.h"
#include "Statistics.h"
#include "Stream.h"

#include <fmt/format.h>

#include <cmath>
#include <numeric>

using namespace megalith::bench;
using json = nlohmann::ordered_json;

namespace {

constexpr uint64_t kMib = 1 << 20;
/// What the read stream reads, in MiB; shorter ones would time the launch.
constexpr uint64_t kStreamMib[] = {16, 32, 64, 128, 256, 1024};
/// Bytes in flight an SM beside the edges, in KiB.
constexpr int kInFlightKib[] = {0, 8, 17, 25, 34, 51, 68, 102};
/// The vector that an edge passes: bytes of payload.
constexpr int kVectorBytes = 4096;
/// Values of Mode in kernels.cu.
enum Mode { kBarrier, kEdge, kFlagged, kCounter };
constexpr int kSlots = 8;
constexpr int kThreads = 512;
constexpr int kRepeats = 5;

/// Two decimals: what is below is noise.
double rounded(double value) { return std::round(value * 100) / 100; }

class Calibration {
public:
  explicit Calibration(Gpu &gpu)
      : gpu(gpu), stream(gpu, kStreamMib[std::size(kStreamMib) - 1] * kMib),
        counters(gpu.allocate(counterBytes())),
        words(gpu.allocate(2 * wordBytes())),
        streamed(gpu.allocate(8 * gpu.facts().sms)) {}

  ~Calibration() {
    for (uint64_t address : {counters, words, streamed})
      gpu.free(address);
  }

  json costs() {
    json costs;
    costs["clock_ghz"] = rounded(measureClock(gpu));
    costs["launch_us"] = rounded(launchTime());
    costs["stream"] = streamRates();
    costs["in_flight"] = loadedEdges();
    costs["flag_us"] = rounded(flagTime());
    return costs;
  }

private:
  uint64_t counterBytes() const { return 128ull * (2 + gpu.facts().sms); }
  /// A half of `words`, with room for 12 bytes of payload a word.
  static uint64_t wordBytes() { return (kVectorBytes + 11) / 12 * 16; }

  /// A launch that does nothing, back to back.
  double launchTime() {
    std::vector<double> times;
    for (int i = 0; i < kRepeats; ++i)
      times.push_back(gpu.timeAll(200, [&](int) {
        Launch launch{"bench_empty", gpu.facts().sms, kThreads, 0, {counters}};
        launch.cooperative = true;
        gpu.launch(launch);
      }));
    return median(times);
  }

  json streamRates() {
    json rates = json::array();
    for (uint64_t mib : kStreamMib) {
      stream.clear();
      for (int i = 0; i < 3 * kRepeats; ++i)
        stream.measure(mib);
      rates.push_back({{"mib", mib}, {"gbps", std::round(stream.rate())}});
    }
    return rates;
  }

  struct Edge {
    double us, gbps;
  };

  /// Time of one round of `mode`, and the stream beside it.
  Edge edge(Mode mode, int inFlightKib) {
    const int sms = gpu.facts().sms;
    const uint64_t slot = uint64_t(inFlightKib) * 1024 / kSlots / 128 * 128;
    // Every CTA has its part of the buffer, as long as several rings.
    const uint64_t part = stream.bytes() / sms / 128 * 128;
    const uint64_t rounds = inFlightKib == 0 ? 1000 : 400;
    const uint64_t count = (mode == kFlagged ? wordBytes() : kVectorBytes) / 16;
    Launch launch{"bench_edges",
                  sms,
                  kThreads,
                  int(count * 16 + kSlots * slot),
                  {uint64_t(mode), rounds, counters, words, count,
                   stream.address(), part, slot, streamed}};
    launch.oneStruct = launch.cooperative = true;
    std::vector<double> times, rates;
    for (int i = 0; i < kRepeats; ++i) {
      gpu.zero(counters, counterBytes());
      gpu.zero(words, 2 * wordBytes());
      double us = gpu.timeAll(1, [&](int) { gpu.launch(launch); });
      std::vector<uint64_t> bytes(sms);
      gpu.download(bytes.data(), streamed, 8 * bytes.size());
      times.push_back(us / double(rounds));
      rates.push_back(
          double(std::accumulate(bytes.begin(), bytes.end(), uint64_t(0))) /
          us / 1e3);
    }
    return {median(times), median(rates)};
  }

  json loadedEdges() {
    json list = json::array();
    for (int kib : kInFlightKib) {
      if (kVectorBytes + kib * 1024 + 4096 > gpu.facts().sharedBytes)
        break;
      Edge barrier = edge(kBarrier, kib), whole = edge(kEdge, kib),
           flagged = edge(kFlagged, kib), counter = edge(kCounter, kib);
      list.push_back({{"kib", kib},
                      {"gbps", std::round(barrier.gbps)},
                      {"barrier_us", rounded(barrier.us)},
                      {"edge_us", rounded(whole.us)},
                      {"flagged_edge_us", rounded(flagged.us)},
                      {"counter_us", rounded(counter.us)}});
    }
    return list;
  }

  /// One flag from one SM to another: mean over near and far ones.
  double flagTime() {
    const int sms = gpu.facts().sms;
    const uint64_t rounds = 1000;
    double total = 0;
    int partners = 0;
    for (int partner = 1; partner < sms; partner += std::max(1, sms / 8)) {
      std::vector<double> times;
      for (int i = 0; i < kRepeats; ++i) {
        gpu.zero(counters, counterBytes());
        Launch launch{
            "bench_flag", sms, 32, 0, {counters, uint64_t(partner), rounds}};
        launch.cooperative = true;
        times.push_back(gpu.timeAll(1, [&](int) { gpu.launch(launch); }) /
                        double(2 * rounds));
      }
      total += median(times);
      ++partners;
    }
    return partners == 0 ? 0 : total / partners;
  }

  Gpu &gpu;
  ReadStream stream;
  uint64_t counters, words, streamed;
};

} // namespace

json megalith::bench::calibrate(Gpu &gpu, json base) {
  const DeviceFacts &facts = gpu.facts();
  if (!base.is_object())
    throw BenchError("machine file is not a JSON object");
  if (base.contains("arch") && base["arch"] != facts.arch)
    throw BenchError(fmt::format("machine file is for arch {}, expected the "
                                 "device's, {}",
                                 base["arch"].dump(), facts.arch));
  json defaults = {{"name", facts.name},
                   {"arch", facts.arch},
                   {"ctas", facts.sms},
                   {"threads", kThreads},
                   {"shared_bytes", facts.sharedBytes}};
  for (auto &[key, value] : defaults.items())
    if (!base.contains(key))
      base[key] = value;
  base["calibrated"] = true;
  json measured = Calibration(gpu).costs();
  // Costs that a fit made, not a measurement of the machine alone, stay.
  json &costs = base["costs"];
  for (auto &[key, value] : measured.items())
    costs[key] = value;
  return base;
}

std::string megalith::bench::summaryOf(const json &machine) {
  const json &costs = machine["costs"];
  std::string text =
      fmt::format("{} ({}): {} GHz, launch {} us, flag {} us\n"
                  "stream:",
                  machine["name"].get<std::string>(),
                  machine["arch"].get<std::string>(), costs["clock_ghz"].dump(),
                  costs["launch_us"].dump(), costs["flag_us"].dump());
  for (const json &entry : costs["stream"])
    text += fmt::format(" {} MiB {} GB/s;", entry["mib"].dump(),
                        entry["gbps"].dump());
  text += fmt::format("\nin flight an SM | stream GB/s | barrier us | edge of "
                      "{} B us | flagged edge us | counter us\n",
                      kVectorBytes);
  for (const json &entry : costs["in_flight"])
    text += fmt::format("{:11} KiB | {:11} | {:10} | {:14} | {:15} | {:10}\n",
                        entry["kib"].dump(), entry["gbps"].dump(),
                        entry["barrier_us"].dump(), entry["edge_us"].dump(),
                        entry["flagged_edge_us"].dump(),
                        entry["counter_us"].dump());
  return text;
}
