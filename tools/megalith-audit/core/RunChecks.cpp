// SPDX-License-Identifier: Apache-2.0
/// \file
/// Many steps, the same steps again, steps past the end, and two sequences at
/// once.

#include "Checks.h"

#include <chrono>

using namespace mega::audit;
using namespace megalith;

namespace {

/// Outputs and final states of a sequence.
struct Trace {
  std::vector<Tensor> outputs;
  std::vector<Tensor> states;

  /// "" or where they differ.
  std::string differenceFrom(const Trace &other,
                             const Manifest &manifest) const {
    for (size_t i = 0; i < outputs.size(); ++i)
      if (!same(outputs[i], other.outputs[i]))
        return fmt::format("the output of step {} differs", i);
    for (size_t i = 0; i < states.size(); ++i)
      if (!same(states[i], other.states[i]))
        return fmt::format("state '{}' differs", manifest.states[i].name);
    return "";
  }
};

std::vector<Tensor> statesOf(Subject &subject) {
  std::vector<Tensor> states;
  for (const StateDesc &desc : subject.manifest().states)
    states.push_back(subject.state(desc));
  return states;
}

/// A sequence's next token: two sequences have none in common.
Tensor tokenOf(const Bench &bench, int sequence, int64_t step) {
  return bench.token(1000 * (sequence + 1) + step);
}

Trace trace(Bench &bench, Subject &subject, int sequence) {
  Trace result;
  subject.begin(bench.start(uint64_t(sequence)));
  for (int64_t i = 0; i < bench.plan.reruns; ++i)
    result.outputs.push_back(subject.step(tokenOf(bench, sequence, i)));
  result.states = statesOf(subject);
  return result;
}

} // namespace

Finding mega::audit::checkReruns(Bench &bench) {
  Trace first = trace(bench, bench.subject, 0);
  bench.subject.disturb(bench.plan.seed + 7);
  Trace second = trace(bench, bench.subject, 0);
  bench.subject.disturb(0);
  std::string difference =
      second.differenceFrom(first, bench.subject.manifest());
  if (!difference.empty())
    return {"", Outcome::Fail, difference};
  return {"", Outcome::Pass,
          fmt::format("{} steps twice{}, same bits in outputs and states",
                      bench.plan.reruns,
                      bench.gpu ? "" : ", in another order of threads")};
}

Finding mega::audit::checkScratch(Bench &bench) {
  const Manifest &manifest = bench.subject.manifest();
  if (!bench.gpuSubject)
    return {"", Outcome::Pass,
            "the simulator poisons all scratch before each launch"};
  if (!manifest.persistent)
    return {"", Outcome::Skipped,
            "the manifest does not say what in the workspace is scratch "
            "(workspace.persistent)"};
  // Everything but what persists.
  std::vector<std::pair<uint64_t, uint64_t>> spans = {
      {0, manifest.workspaceBytes}};
  for (const PersistentDesc &kept : *manifest.persistent) {
    std::vector<std::pair<uint64_t, uint64_t>> rest;
    for (auto [begin, end] : spans) {
      if (begin < std::min(end, kept.offset))
        rest.emplace_back(begin, std::min(end, kept.offset));
      if (std::max(begin, kept.offset + kept.bytes) < end)
        rest.emplace_back(std::max(begin, kept.offset + kept.bytes), end);
    }
    spans = rest;
  }
  uint64_t scratch = 0;
  for (auto [begin, end] : spans)
    scratch += end - begin;

  Trace clean = trace(bench, bench.subject, 0);
  // NaN in every type; the largest numbers; ones.
  for (uint8_t poison : {0xff, 0x7f, 0x3f}) {
    Trace poisoned;
    bench.subject.begin(bench.start());
    for (int64_t i = 0; i < bench.plan.reruns; ++i) {
      for (auto [begin, end] : spans) {
        std::vector<uint8_t> bytes(end - begin, poison);
        check(bench.gpuSubject->get().writeWorkspace(begin, bytes.data(),
                                                     bytes.size()));
      }
      poisoned.outputs.push_back(bench.subject.step(tokenOf(bench, 0, i)));
    }
    poisoned.states = statesOf(bench.subject);
    std::string difference = poisoned.differenceFrom(clean, manifest);
    if (!difference.empty())
      return {"", Outcome::Fail,
              fmt::format("with {:#04x} in scratch, {}", poison, difference)};
  }
  return {"", Outcome::Pass,
          fmt::format("{} bytes of scratch poisoned before each of {} steps, "
                      "same bits",
                      scratch, 3 * bench.plan.reruns)};
}

Finding mega::audit::checkLongRun(Bench &bench) {
  auto subject = bench.subject.another(bench.plan.context + bench.plan.steps);
  subject->begin(bench.start());
  auto begin = std::chrono::steady_clock::now();
  for (int64_t i = 0; i < bench.plan.steps; ++i) {
    Tensor out = subject->step(bench.token(i));
    if (!finite(out))
      return {"", Outcome::Fail,
              fmt::format("step {} gives numbers that are not finite", i)};
  }
  std::chrono::duration<double> taken =
      std::chrono::steady_clock::now() - begin;
  constexpr int64_t wanted = 1000;
  return {"", bench.plan.steps < wanted ? Outcome::Partial : Outcome::Pass,
          fmt::format("{} steps in {:.1f} s, context {} to {}",
                      bench.plan.steps, taken.count(), bench.plan.context,
                      bench.plan.context + bench.plan.steps)};
}

Finding mega::audit::checkCapacity(Bench &bench) {
  constexpr int64_t spare = 2;
  auto subject = bench.subject.another(bench.plan.context + spare);
  Start start = bench.start();
  subject->begin(start);
  Tensor first = subject->step(bench.token(0));
  for (int64_t i = 1; i < spare; ++i)
    subject->step(bench.token(i));
  std::vector<Tensor> before = statesOf(*subject);
  int64_t position = subject->position();

  Tensor out;
  Status status = subject->tryStep(bench.token(spare), out);
  if (status.code() != MEGALITH_CAPACITY)
    return {"", Outcome::Fail,
            fmt::format("a step at position {} of {} rows gives {} ({}), "
                        "expected MEGALITH_CAPACITY",
                        position, position, megalith_status_name(status.code()),
                        status.message())};
  if (subject->position() != position)
    return {"", Outcome::Fail, "a refused step moves the position"};
  std::vector<Tensor> after = statesOf(*subject);
  for (size_t i = 0; i < before.size(); ++i)
    if (!same(before[i], after[i]))
      return {"", Outcome::Fail,
              fmt::format("a refused step changes state '{}'",
                          subject->manifest().states[i].name)};
  subject->begin(start);
  if (!same(subject->step(bench.token(0)), first))
    return {"", Outcome::Fail,
            "after a refused step the same token gives another output"};
  return {"", Outcome::Pass,
          fmt::format("step {} refused: {}", position, status.message())};
}

/// Both sequences in turn, each on its own stream, nothing waiting between.
static void interleaveOnStreams(Bench &bench, GpuSubject &other,
                                Trace traces[2]) {
  Gpu &gpu = *bench.gpu;
  const Manifest &manifest = bench.subject.manifest();
  GpuSubject *subjects[2] = {bench.gpuSubject, &other};
  std::vector<uint64_t> inputs[2], outputs[2];
  void *streams[2];
  for (int s = 0; s < 2; ++s) {
    streams[s] = gpu.stream();
    subjects[s]->begin(bench.start(uint64_t(s)));
    for (int64_t i = 0; i < bench.plan.reruns; ++i) {
      Tensor token = tokenOf(bench, s, i);
      inputs[s].push_back(gpu.upload(token.data, token.bytes));
      outputs[s].push_back(gpu.allocate(manifest.output.bytes));
    }
  }
  for (int64_t i = 0; i < bench.plan.reruns; ++i)
    for (int s = 0; s < 2; ++s)
      check(subjects[s]->get().step(inputs[s][i], outputs[s][i], streams[s]));
  for (int s = 0; s < 2; ++s)
    check(subjects[s]->get().wait(streams[s], std::chrono::seconds(10)));
  for (int s = 0; s < 2; ++s) {
    for (uint64_t address : outputs[s]) {
      std::vector<uint8_t> bytes = gpu.download(address, manifest.output.bytes);
      traces[s].outputs.push_back(Tensor::copyOf(
          manifest.output.dtype, manifest.output.shape, bytes.data()));
    }
    traces[s].states = statesOf(*subjects[s]);
  }
}

Finding mega::audit::checkSecondInstance(Bench &bench) {
  auto other = bench.subject.another(rowsFor(bench.plan));
  Trace alone[2] = {trace(bench, bench.subject, 0), trace(bench, *other, 1)};
  Trace together[2];
  if (bench.gpu) {
    interleaveOnStreams(bench, static_cast<GpuSubject &>(*other), together);
  } else {
    Subject *subjects[2] = {&bench.subject, other.get()};
    for (int s = 0; s < 2; ++s)
      subjects[s]->begin(bench.start(uint64_t(s)));
    for (int64_t i = 0; i < bench.plan.reruns; ++i)
      for (int s = 0; s < 2; ++s)
        together[s].outputs.push_back(subjects[s]->step(tokenOf(bench, s, i)));
    for (int s = 0; s < 2; ++s)
      together[s].states = statesOf(*subjects[s]);
  }
  for (int s = 0; s < 2; ++s) {
    std::string difference =
        together[s].differenceFrom(alone[s], bench.subject.manifest());
    if (!difference.empty())
      return {"", Outcome::Fail,
              fmt::format("instance {}, beside another: {}", s, difference)};
  }
  return {"", Outcome::Pass,
          fmt::format("{} steps of two instances in turn{}, same bits as "
                      "alone",
                      2 * bench.plan.reruns,
                      bench.gpu ? ", each on its stream" : "")};
}
