// SPDX-License-Identifier: Apache-2.0
/// \file
/// Parses and checks the command line.

#include "Options.h"

#include "Files.h"
#include "Gpu.h"

#include <fmt/format.h>

#include <charconv>
#include <getopt.h>

using namespace megalith::bench;

std::string megalith::bench::usage() {
  return R"(megalith-bench: measures compiled blocks, and machines, on a GPU

usage: megalith-bench BUNDLE [--vs=DIR]... [options]
       megalith-bench --candidates=DIR [options]
       megalith-bench --calibrate [--machine=FILE] -o FILE
       megalith-bench --write-kernels --arch=sm_90a -o FILE

  --context=N,...     rows in each cache before a step (default 2048)
  --vs=DIR            another bundle, measured in turn with the first; repeats
  --candidates=DIR    every bundle that DIR/candidates.json lists, as
                      megalith-explore writes it
  --steps=N           timed steps a bundle and context (default 192)
  --batch=N           tokens a step; bundles are compiled for 1
  --phase-steps=N     steps for the phase table of an instrumented bundle
                      (default 12)
  --seed=N            of weights, state and inputs, all random (default 1)
  --threads=N         for making weights (default: all cores)
  --device=N          CUDA device (default 0)
  --json=FILE         also writes all that was measured; - for standard output
  --kernels=FILE      a cubin of the measuring kernels, where there is no NVRTC
  --calibrate         measures the machine and writes a machine file
  --machine=FILE      machine file whose other keys --calibrate keeps
  --write-kernels     compiles the measuring kernels for --arch
  -o FILE             what --calibrate or --write-kernels writes
)";
}

namespace {

template <typename T>
T parseNumber(const std::string &option, const std::string &text, T least,
              T most) {
  T value{};
  auto [end, error] =
      std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() ||
      value < least || value > most)
    throw BenchError(fmt::format("{} is '{}', expected {} to {}", option, text,
                                 least, most));
  return value;
}

std::vector<int64_t> parseContexts(const std::string &text) {
  std::vector<int64_t> contexts;
  size_t at = 0;
  for (;;) {
    size_t comma = text.find(',', at);
    contexts.push_back(parseNumber<int64_t>(
        "--context", text.substr(at, comma - at), 0, (1 << 30)));
    if (comma == std::string::npos)
      return contexts;
    at = comma + 1;
  }
}

/// The bundles of a folder that megalith-explore wrote.
void addCandidates(Options &options, const std::string &folder) {
  std::string path = folder + "/candidates.json";
  nlohmann::ordered_json list = readJsonFile(path);
  if (!list.is_object() || !list.contains("candidates") ||
      !list["candidates"].is_array())
    throw BenchError(fmt::format(
        "'{}' has no array 'candidates', expected megalith-explore's", path));
  for (const nlohmann::ordered_json &entry : list["candidates"]) {
    if (!entry.is_object() || !entry.contains("bundle") ||
        !entry["bundle"].is_string())
      throw BenchError(fmt::format(
          "'{}' has a candidate without the string 'bundle'", path));
    options.bundles.push_back(folder + "/" +
                              entry["bundle"].get<std::string>());
  }
}

enum Flag {
  kHelp = 'h',
  kOutput = 'o',
  kContext = 256,
  kVs,
  kCandidates,
  kSteps,
  kBatch,
  kPhaseSteps,
  kSeed,
  kThreads,
  kDevice,
  kJson,
  kKernels,
  kCalibrate,
  kMachine,
  kWriteKernels,
  kArch
};

const option longOptions[] = {
    {"help", no_argument, nullptr, kHelp},
    {"context", required_argument, nullptr, kContext},
    {"vs", required_argument, nullptr, kVs},
    {"candidates", required_argument, nullptr, kCandidates},
    {"steps", required_argument, nullptr, kSteps},
    {"batch", required_argument, nullptr, kBatch},
    {"phase-steps", required_argument, nullptr, kPhaseSteps},
    {"seed", required_argument, nullptr, kSeed},
    {"threads", required_argument, nullptr, kThreads},
    {"device", required_argument, nullptr, kDevice},
    {"json", required_argument, nullptr, kJson},
    {"kernels", required_argument, nullptr, kKernels},
    {"calibrate", no_argument, nullptr, kCalibrate},
    {"machine", required_argument, nullptr, kMachine},
    {"write-kernels", no_argument, nullptr, kWriteKernels},
    {"arch", required_argument, nullptr, kArch},
    {nullptr, 0, nullptr, 0}};

/// What the flags together must satisfy.
void checkTogether(const Options &options, bool vs, bool archGiven) {
  using Action = Options::Action;
  bool measures = options.action == Action::Measure;
  if (measures && options.bundles.empty())
    throw BenchError("no bundle is given, expected BUNDLE, --candidates=DIR, "
                     "--calibrate or --write-kernels");
  if (!measures && !options.bundles.empty())
    throw BenchError(fmt::format(
        "bundle '{}' is given with --{}, expected none",
        options.bundles.front(),
        options.action == Action::Calibrate ? "calibrate" : "write-kernels"));
  if (measures && vs && options.bundles.size() < 2)
    throw BenchError("--vs is given without BUNDLE, expected both");
  if (!measures && options.output.empty())
    throw BenchError("-o is missing, expected the file to write");
  if (measures && !options.output.empty())
    throw BenchError("-o is for --calibrate and --write-kernels, expected "
                     "--json=FILE");
  if (!options.machine.empty() && options.action != Action::Calibrate)
    throw BenchError("--machine is given without --calibrate");
  if (archGiven && options.action != Action::WriteKernels)
    throw BenchError("--arch is given without --write-kernels, expected the "
                     "device's own");
  if (!options.json.empty() && !measures)
    throw BenchError("--json is for measuring bundles, expected -o FILE");
}

} // namespace

Options megalith::bench::parseOptions(int argc, char **argv) {
  Options options;
  std::vector<std::string> others;
  bool archGiven = false, actionGiven = false;
  auto act = [&](Options::Action action) {
    if (actionGiven && options.action != action)
      throw BenchError("--calibrate and --write-kernels are both given, "
                       "expected one");
    options.action = action;
    actionGiven = true;
  };
  opterr = 0;
  optind = 1;
  for (;;) {
    int index = optind;
    int flag = getopt_long(argc, argv, ":ho:", longOptions, nullptr);
    if (flag < 0)
      break;
    std::string value = optarg ? optarg : "";
    switch (flag) {
    case kHelp:
      options.action = Options::Action::Help;
      return options;
    case kOutput:
      options.output = value;
      break;
    case kContext:
      options.contexts = parseContexts(value);
      break;
    case kVs:
      others.push_back(value);
      break;
    case kCandidates:
      addCandidates(options, value);
      break;
    case kSteps:
      options.steps = parseNumber<int>("--steps", value, 1, 1000000);
      break;
    case kBatch:
      options.batch = parseNumber<int>("--batch", value, 1, 8);
      break;
    case kPhaseSteps:
      options.phaseSteps = parseNumber<int>("--phase-steps", value, 1, 1000);
      break;
    case kSeed:
      options.seed = parseNumber<uint64_t>("--seed", value, 0, UINT64_MAX);
      break;
    case kThreads:
      options.threads = parseNumber<unsigned>("--threads", value, 0, 4096);
      break;
    case kDevice:
      options.device = parseNumber<int>("--device", value, 0, 1023);
      break;
    case kJson:
      options.json = value;
      break;
    case kKernels:
      options.kernels = value;
      break;
    case kCalibrate:
      act(Options::Action::Calibrate);
      break;
    case kMachine:
      options.machine = value;
      break;
    case kWriteKernels:
      act(Options::Action::WriteKernels);
      break;
    case kArch:
      options.arch = value;
      archGiven = true;
      break;
    case ':':
      throw BenchError(
          fmt::format("{} has no value, expected one", argv[optind - 1]));
    default:
      throw BenchError(
          fmt::format("unknown or ambiguous option '{}', see --help",
                      argv[optind > index ? optind - 1 : index]));
    }
  }
  for (int i = optind; i < argc; ++i) {
    if (i > optind)
      throw BenchError(fmt::format("'{}' stands beside '{}', expected one "
                                   "bundle, and others by --vs",
                                   argv[i], argv[optind]));
    options.bundles.insert(options.bundles.begin(), argv[i]);
  }
  options.bundles.insert(options.bundles.end(), others.begin(), others.end());
  checkTogether(options, !others.empty(), archGiven);
  return options;
}
