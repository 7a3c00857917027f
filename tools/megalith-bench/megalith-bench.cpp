// SPDX-License-Identifier: Apache-2.0
/// \file
/// Measures compiled blocks and machines on a GPU. It holds no compiler and
/// links nothing but the C library, so that one file runs anywhere.

#include "Calibrate.h"
#include "Files.h"
#include "Kernels.h"
#include "Measure.h"

#include <fmt/format.h>

using namespace megalith::bench;

static void calibrateMachine(const Options &options) {
  nlohmann::ordered_json base = nlohmann::ordered_json::object();
  if (!options.machine.empty()) {
    base = readJsonFile(options.machine);
    if (!base.is_object())
      throw BenchError(
          fmt::format("'{}' is not a JSON object, expected a machine file",
                      options.machine));
  }
  std::unique_ptr<Gpu> gpu = openGpu(options.device);
  gpu->loadKernels(kernelImage(gpu->facts().arch, options.kernels));
  nlohmann::ordered_json machine = calibrate(*gpu, std::move(base));
  writeWholeFile(options.output, machine.dump(2) + "\n");
  if (options.output != "-")
    fmt::print("{}", summaryOf(machine));
}

static void measure(const Options &options) {
  std::unique_ptr<Gpu> gpu = openGpu(options.device);
  gpu->loadKernels(kernelImage(gpu->facts().arch, options.kernels));
  measureBundles(*gpu, options, [&](const Session &run) {
    // One of the two may have standard output.
    fmt::print(options.json == "-" ? stderr : stdout, "{}", textOf(run));
    if (!options.json.empty())
      writeWholeFile(options.json, jsonOf(run).dump(1) + "\n");
  });
}

int main(int argc, char **argv) {
  try {
    Options options = parseOptions(argc, argv);
    switch (options.action) {
    case Options::Action::Help:
      fmt::print("{}", usage());
      break;
    case Options::Action::Measure:
      measure(options);
      break;
    case Options::Action::Calibrate:
      calibrateMachine(options);
      break;
    case Options::Action::WriteKernels:
      writeWholeFile(options.output, kernelImage(options.arch, ""));
      break;
    }
    if (std::fflush(stdout) != 0 || std::ferror(stdout))
      throw BenchError("cannot write to standard output");
    return 0;
  } catch (const std::exception &error) {
    fmt::print(stderr, "megalith-bench: error: {}\n", error.what());
    return 1;
  }
}
