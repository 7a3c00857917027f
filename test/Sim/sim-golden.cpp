// SPDX-License-Identifier: Apache-2.0
/// \file
/// Runs a bundle on the simulator against golden vectors:
///
///   sim-golden BUNDLE GOLDEN [--policy=P|all] [--seed=N] [--sms=S]
///              [--races=0|1] [--steps=N] [--limit=L]
///
/// Prints a line a step. Fails if the simulator reports anything, if experts
/// differ, or if step 0 is farther than L (relative L2) from the golden output.

#include "Golden.h"

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>

using namespace megalith;

static void expect(const Status &status) {
  if (status.ok())
    return;
  std::fprintf(stderr, "sim-golden: error: %s\n", status.message().c_str());
  std::exit(1);
}

int main(int argc, char **argv) {
  std::string policy = "round-robin";
  uint64_t seed = 0;
  int sms = 0, races = 1, steps = 0;
  double limit = 3e-3;
  for (int i = 3; i < argc; ++i) {
    auto value = [&](const char *name) -> const char * {
      size_t length = std::strlen(name);
      return std::strncmp(argv[i], name, length) == 0 ? argv[i] + length
                                                      : nullptr;
    };
    if (const char *v = value("--policy="))
      policy = v;
    else if (const char *v = value("--seed="))
      seed = std::strtoull(v, nullptr, 10);
    else if (const char *v = value("--sms="))
      sms = std::atoi(v);
    else if (const char *v = value("--races="))
      races = std::atoi(v);
    else if (const char *v = value("--steps="))
      steps = std::atoi(v);
    else if (const char *v = value("--limit="))
      limit = std::atof(v);
    else {
      std::fprintf(stderr, "sim-golden: error: unknown option %s\n", argv[i]);
      return 2;
    }
  }
  if (argc < 3) {
    std::fprintf(stderr, "usage: sim-golden BUNDLE GOLDEN [options]\n");
    return 2;
  }
  auto bundle = loadBundle(argv[1]);
  expect(bundle.status());
  Golden golden(argv[2]);
  SimCompileOptions compile;
  compile.races = races != 0;
  if (steps == 0)
    steps = golden.steps();
  auto instance =
      SimInstance::create(*bundle, golden.context() + steps, sms, compile);
  expect(instance.status());
  expect(golden.bind(**instance));
  bool failed = false, known = false;
  for (auto [name, value] : simPolicies()) {
    if (policy != "all" && policy != name)
      continue;
    known = true;
    (*instance)->setOptions({seed, value, 8});
    expect(golden.begin(**instance));
    for (int step = 0; step < steps; ++step) {
      StepDistance distance;
      auto start = std::chrono::steady_clock::now();
      expect(golden.step(**instance, step, distance));
      double seconds = std::chrono::duration<double>(
                           std::chrono::steady_clock::now() - start)
                           .count();
      const SimRun &run = (*instance)->lastRun();
      std::printf("%s step %d: rel L2 %.3e, experts %s; %.2f s, %.1f M "
                  "switches, %.1f M accesses\n",
                  name.c_str(), step, distance.output,
                  distance.sameExperts ? "equal" : "differ", seconds,
                  run.switches * 1e-6, run.accesses * 1e-6);
      std::fflush(stdout);
      failed |= !distance.sameExperts ||
                !(distance.output <= (step == 0 ? limit : 1e-2));
    }
  }
  if (!known) {
    std::fprintf(stderr, "sim-golden: error: unknown policy %s\n",
                 policy.c_str());
    return 2;
  }
  return failed;
}
