// SPDX-License-Identifier: Apache-2.0
/// \file
/// Runs a bundle with random weights and states:
///
///   sim-history BUNDLE [--contexts=A,B,..] [--steps=N] [--policy=P] [--seed=N]
///               [--sms=S] [--races=0|1]
///
/// Two steps at each context, or N, as one history of launches. Prints a hash
/// of all outputs and final states, which depends on neither policy nor seed,
/// and how long it took. Fails if the simulator reports anything.

#include "RandomBlock.h"

#include "Golden.h"

#include <sys/resource.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <sstream>

using namespace megalith;

int main(int argc, char **argv) {
  std::vector<int64_t> contexts;
  std::string policy = "round-robin";
  SimOptions options;
  int sms = 0, steps = 2;
  SimCompileOptions compile;
  for (int i = 2; i < argc; ++i) {
    auto value = [&](const char *name) -> const char * {
      size_t length = std::strlen(name);
      return std::strncmp(argv[i], name, length) == 0 ? argv[i] + length
                                                      : nullptr;
    };
    if (const char *v = value("--contexts=")) {
      std::istringstream list(v);
      for (std::string item; std::getline(list, item, ',');)
        contexts.push_back(std::atoll(item.c_str()));
    } else if (const char *v = value("--policy="))
      policy = v;
    else if (const char *v = value("--seed="))
      options.seed = std::strtoull(v, nullptr, 10);
    else if (const char *v = value("--sms="))
      sms = std::atoi(v);
    else if (const char *v = value("--steps="))
      steps = std::atoi(v);
    else if (const char *v = value("--races="))
      compile.races = std::atoi(v) != 0;
    else {
      std::fprintf(stderr, "sim-history: error: unknown option %s\n", argv[i]);
      return 2;
    }
  }
  if (argc < 2) {
    std::fprintf(stderr, "usage: sim-history BUNDLE [options]\n");
    return 2;
  }
  if (contexts.empty())
    contexts = {33, 5};
  bool known = false;
  for (auto [name, value] : simPolicies())
    if (name == policy) {
      options.policy = value;
      known = true;
    }
  auto bundle = loadBundle(argv[1]);
  if (!known || !bundle) {
    std::fprintf(stderr, "sim-history: error: %s\n",
                 known ? bundle.status().message().c_str()
                       : ("unknown policy " + policy).c_str());
    return 2;
  }
  RandomBlock block(*bundle, 1, contexts, steps);
  auto seconds = [start = std::chrono::steady_clock::now()] {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() -
                                         start)
        .count();
  };
  auto kernel = SimKernel::compile(
      readText(std::string(argv[1]) + "/kernel.cu"), compile);
  double compiled = seconds();
  History history = kernel ? block.run(*kernel, sms, options)
                           : History{kernel.status(), {}, {}};
  if (!history.status.ok()) {
    std::fprintf(stderr, "sim-history: error: %s\n",
                 history.status.message().c_str());
    return 1;
  }
  uint64_t hash = 0xcbf29ce484222325;
  for (const std::vector<uint8_t> &bytes : history.values)
    for (uint8_t byte : bytes)
      hash = (hash ^ byte) * 0x100000001b3;
  struct rusage usage;
  ::getrusage(RUSAGE_SELF, &usage);
  std::printf("hash %016llx\n", static_cast<unsigned long long>(hash));
  std::fprintf(stderr,
               "compiled in %.2f s, %zu steps in %.2f s, %.2f GiB at most\n",
               compiled, contexts.size() * steps, seconds() - compiled,
               double(usage.ru_maxrss) / (1 << 20));
  return 0;
}
