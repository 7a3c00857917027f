// SPDX-License-Identifier: Apache-2.0
/// \file
/// What only a GPU can tell: addresses, calls of the driver, time.

#include "Checks.h"

#include <algorithm>

using namespace mega::audit;
using namespace megalith;

/// What a check says that the simulator cannot make.
static Finding withoutGpu(const char *reason) {
  return {"", Outcome::Skipped, reason};
}

Finding mega::audit::checkInPlace(Bench &bench) {
  if (!bench.gpu)
    return withoutGpu("the simulator's vectors are its own");
  const Manifest &manifest = bench.subject.manifest();
  Instance &instance = bench.gpuSubject->get();
  bench.subject.begin(bench.start());
  Tensor token = bench.token(0);
  uint64_t bytes = std::max(manifest.input.bytes, manifest.output.bytes);
  uint64_t buffer = bench.gpu->allocate(bytes);
  bench.gpu->write(buffer, token.data, token.bytes);
  if (!manifest.inPlace) {
    Status status = instance.step(buffer, buffer, nullptr);
    if (status.code() != MEGALITH_INVALID_ARGUMENT)
      return {"", Outcome::Fail,
              "the manifest forbids it, and it is not refused"};
    return {"", Outcome::Pass, "refused, as the manifest says"};
  }
  Tensor apart = bench.subject.step(token);
  bench.subject.begin(bench.start());
  check(instance.step(buffer, buffer, nullptr));
  std::vector<uint8_t> over =
      bench.gpu->download(buffer, manifest.output.bytes);
  if (!std::equal(over.begin(), over.end(), apart.data))
    return {"", Outcome::Fail, "another output than beside the input"};
  return {"", Outcome::Pass, "same bits as beside the input"};
}

namespace {

/// Steps that keep their place, on a stream, between device buffers.
class Stepper {
public:
  explicit Stepper(Bench &bench)
      : bench(bench), instance(bench.gpuSubject->get()),
        stream(bench.gpu->stream()) {
    Tensor token = bench.token(0);
    input = bench.gpu->upload(token.data, token.bytes);
    output = bench.gpu->allocate(bench.subject.manifest().output.bytes);
    bench.subject.begin(bench.start());
  }
  void step() {
    check(instance.setPosition(bench.plan.context));
    check(instance.step(input, output, stream));
  }
  void wait() { check(instance.wait(stream, std::chrono::seconds(10))); }

  Bench &bench;
  Instance &instance;
  void *stream;
  uint64_t input, output;
};

} // namespace

Finding mega::audit::checkLaunches(Bench &bench) {
  if (!bench.gpu)
    return withoutGpu("the simulator has no driver");
  constexpr long steps = 16;
  Stepper stepper(bench);
  stepper.step();
  stepper.wait();
  CallLog log(bench.plan.cupti);
  log.clear();
  for (long i = 0; i < steps; ++i)
    stepper.step();
  CallSummary summary = summarize(log.counts());
  stepper.wait();
  std::string others;
  for (const auto &[name, count] : summary.others)
    others += fmt::format(", {} {}", count, name);
  std::string detail =
      fmt::format("{} steps: {} launches{} (by {})", steps, summary.launches,
                  others.empty() ? ", nothing else" : others, log.source());
  bool good = summary.launches == steps && others.empty();
  return {"", good ? Outcome::Pass : Outcome::Fail, detail};
}

/// Bytes that any step must read or write, from the tensors' own sizes: every
/// weight but routed stacks, one expert of each of those, and every state.
static uint64_t leastBytes(const Bench &bench) {
  const Manifest &manifest = bench.subject.manifest();
  uint64_t bytes = 0;
  for (const WeightDesc &weight : manifest.weights) {
    uint64_t whole = 0;
    for (const TensorDesc &tensor : weight.tensors)
      whole += tensor.bytes;
    bytes += weight.kind == WeightDesc::Kind::Quant
                 ? whole / uint64_t(weight.experts())
                 : whole;
  }
  for (const StateDesc &state : manifest.states)
    bytes += state.isCache() ? state.unitBytes * uint64_t(bench.plan.context)
                             : state.unitBytes;
  return bytes;
}

Finding mega::audit::checkTime(Bench &bench) {
  if (!bench.gpu)
    return withoutGpu("the simulator keeps no time");
  const Manifest &manifest = bench.subject.manifest();
  uint64_t bytes = leastBytes(bench);
  const char *source = "by the tensors' sizes";
  if (manifest.traffic) {
    uint64_t claimed =
        manifest.traffic->weights + manifest.traffic->state +
        manifest.traffic->cachePerToken * uint64_t(bench.plan.context);
    if (claimed > bytes) {
      bytes = claimed;
      source = "by the manifest";
    }
  }
  double peak = bench.gpu->peakBandwidth();
  if (peak <= 0)
    return {"", Outcome::Skipped, "the driver gives no memory clock"};
  // What stays in the cache from step to step need not be moved again.
  uint64_t cached = std::min(bytes, bench.gpu->cacheBytes());
  double floor = double(bytes - cached) / peak * 1e6;
  Stepper stepper(bench);
  constexpr int steps = 200;
  double taken =
      bench.gpu->time(stepper.stream, steps, [&] { stepper.step(); });
  std::string detail = fmt::format(
      "{:.2f} us a step, floor {:.2f} us: {:.1f} MB {}, {:.1f} MB of L2, "
      "{:.2f} TB/s",
      taken, floor, bytes / 1e6, source, cached / 1e6, peak / 1e12);
  return {"", taken >= floor ? Outcome::Pass : Outcome::Fail, detail};
}
