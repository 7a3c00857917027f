// SPDX-License-Identifier: Apache-2.0
/// \file
/// The two implementations of every device idiom against each other, bit for
/// bit, on seeded inputs (test/gpu/idioms.cu):
///
///   sim-idioms sim                  the twins, under every policy and in both
///                                   forms, against the instructions'
///                                   definitions
///   sim-idioms pack DIR --arch=A    compiles the device's form; leaves a
///   bundle
///                                   and what the twins compute in DIR
///   sim-idioms gpu DIR              runs that bundle on the GPU and compares
///
/// Prints a line for each section that differs, and fails if one does.

#include "Golden.h"
#include "IdiomSections.h"

#include "mega/runtime/Instance.h"
#include "mega/runtime/Nvrtc.h"
#include "mega/runtime/Simulator.h"

#include <sys/stat.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <regex>

using namespace megalith;

/// Launches of one history: the grid barrier's counter goes on.
static constexpr uint64_t launches = 3;

static void expect(const Status &status) {
  if (status.ok())
    return;
  std::fprintf(stderr, "sim-idioms: error: %s\n", status.message().c_str());
  std::exit(1);
}

template <typename T> static T take(Result<T> result) {
  expect(result.status());
  return std::move(*result);
}

/// As the emitter orders them.
static const char *const idiomFiles[] = {
    "bf16",  "divide", "lane",    "memory",    "mma",       "grid_barrier",
    "stamp", "place",  "counter", "unit_ring", "async_copy"};

static std::string kernelText() {
  std::string text = "#ifndef MEGA_HOST_IDIOMS\n";
  for (const char *name : idiomFiles)
    text += "//===----- " + std::string(name) + ".cuh -----===//\n" +
            readText(std::string(MEGALITH_DEVICE_DIR "/ptx/") + name + ".cuh");
  return text + "#endif // MEGA_HOST_IDIOMS\n" + idiomConstants() +
         readText(MEGALITH_GPU_TEST_DIR "/idioms.cu");
}

static std::string manifestText(const std::string &arch) {
  return R"({"format": "megalith-bundle", "version": 1, "block": "idioms",
  "kernel": "idioms",
  "input": {"dtype": "i32", "shape": [)" +
         std::to_string(idiomInputWords()) + R"(]},
  "output": {"dtype": "i32", "shape": [)" +
         std::to_string(idiomOutputWords()) + R"(]},
  "weights": [], "weight_bytes": 256, "packed": [], "states": [],
  "workspace": {"bytes": 32768}, "probes": [], "in_place": false,
  "launch": {"threads": 128, "shared_bytes": 8192, "max_ctas": 4},
  "targets": [{"arch": ")" +
         arch + R"(", "file": "kernel.cubin"}]})" + "\n";
}

/// One launch of either kind of instance.
template <typename AnyInstance>
static Words launch(AnyInstance &instance, const Words &input) {
  Words output(idiomOutputWords());
  expect(instance.stepHost(input.data(), output.data()));
  return output;
}

/// What the twins compute, with no report.
static Words simulate(int capability, bool races, const SimOptions &options,
                      uint64_t number) {
  auto bundle = std::make_shared<Bundle>();
  bundle->manifest = take(parseManifest(manifestText("sm_90a"), "manifest"));
  SimCompileOptions compile;
  compile.capability = capability;
  compile.races = races;
  auto kernel = take(SimKernel::compile(kernelText(), compile));
  auto instance = take(SimInstance::create(bundle, kernel, 0, 4));
  instance->setOptions(options);
  Words output;
  for (uint64_t i = 0; i <= number; ++i)
    output = launch(*instance, idiomInput(i));
  return output;
}

static bool show(const std::string &what, const std::string &differences) {
  std::printf("%s: %s\n%s", what.c_str(),
              differences.empty() ? "agree" : "differ", differences.c_str());
  return differences.empty();
}

/// Whether idioms.cu calls every function of every idiom file.
static bool coversEverything() {
  static const std::regex function(
      R"(__device__ __forceinline__ [\w ]+?[ *&](\w+)\()");
  const std::string body = readText(MEGALITH_GPU_TEST_DIR "/idioms.cu");
  bool good = true;
  for (const auto &entry :
       std::filesystem::directory_iterator(MEGALITH_DEVICE_DIR "/ptx")) {
    const std::string name = entry.path().stem(), text = readText(entry.path());
    if (std::find(std::begin(idiomFiles), std::end(idiomFiles), name) ==
        std::end(idiomFiles)) {
      std::printf("the idioms %s are not in the list of sim-idioms.cpp\n",
                  name.c_str());
      good = false;
    }
    for (std::sregex_iterator at(text.begin(), text.end(), function), end;
         at != end; ++at) {
      const std::string call = (*at)[1].str() + "(";
      if (body.find(call) == std::string::npos && call != "streamPolicy(") {
        std::printf("idioms.cu calls no %s) of %s.cuh\n", call.c_str(),
                    name.c_str());
        good = false;
      }
    }
  }
  return good;
}

static int checkTwins() {
  bool good = coversEverything();
  for (int capability : {90, 80})
    for (auto [name, policy] : simPolicies())
      for (bool races : {true, false}) {
        const uint64_t number = launches - 1;
        Words found = simulate(capability, races, {number, policy, 8}, number);
        good &=
            show("sm_" + std::to_string(capability) + " " + name +
                     (races ? "" : " unchecked") + ", twins and definitions",
                 compareIdioms(found, expectedIdioms(idiomInput(number))));
      }
  return !good;
}

static int pack(const std::string &folder, const std::string &arch) {
  ::mkdir(folder.c_str(), 0777);
  const std::string text = kernelText();
  NvrtcProgram program =
      take(compileCuda(text, "idioms.cu", arch, NvrtcImage::Cubin));
  auto write = [&](const char *name, const std::string &bytes) {
    std::ofstream file(folder + "/" + name, std::ios::binary);
    file.write(bytes.data(), std::streamsize(bytes.size()));
    if (!file.flush()) {
      std::fprintf(stderr, "sim-idioms: error: cannot write %s/%s\n",
                   folder.c_str(), name);
      std::exit(1);
    }
  };
  auto bundle = take(parseManifest(manifestText(arch), "manifest"));
  std::string simulated;
  for (uint64_t i = 0; i < launches; ++i) {
    Words found = simulate(bundle.targets.front().capability, true, {}, i);
    simulated.append(reinterpret_cast<const char *>(found.data()),
                     found.size() * 4);
  }
  write("kernel.cu", text);
  write("kernel.cubin", program.image);
  write("manifest.json", manifestText(arch));
  write("simulated.bin", simulated);
  std::printf("packed %zu sections, %zu words a launch, for %s\n",
              idiomSections().size(), idiomOutputWords(), arch.c_str());
  return 0;
}

static int checkGpu(const std::string &folder) {
  auto instance = take(Instance::create(take(loadBundle(folder)), 0, 0));
  std::printf("%s, %s, %d CTAs\n", instance->deviceName().c_str(),
              instance->arch().c_str(), instance->grid());
  std::string simulated = readText(folder + "/simulated.bin");
  const size_t bytes = idiomOutputWords() * 4;
  if (simulated.size() != launches * bytes) {
    std::fprintf(stderr,
                 "sim-idioms: error: %s/simulated.bin has %zu bytes, expected "
                 "%zu\n",
                 folder.c_str(), simulated.size(), launches * bytes);
    return 1;
  }
  bool good = true;
  for (uint64_t i = 0; i < launches; ++i) {
    const Words input = idiomInput(i);
    Words found = launch(*instance, input), twins(idiomOutputWords());
    std::memcpy(twins.data(), simulated.data() + i * bytes, bytes);
    const std::string name = "launch " + std::to_string(i);
    good &= show(name + ", GPU and twins", compareIdioms(found, twins));
    good &= show(name + ", GPU and definitions",
                 compareIdioms(found, expectedIdioms(input)));
  }
  return !good;
}

int main(int argc, char **argv) {
  const std::string what = argc > 1 ? argv[1] : "";
  const std::string option = argc > 3 ? argv[3] : "";
  if (what == "sim" && argc == 2)
    return checkTwins();
  if (what == "pack" && argc == 4 && option.rfind("--arch=", 0) == 0)
    return pack(argv[2], option.substr(7));
  if (what == "gpu" && argc == 3)
    return checkGpu(argv[2]);
  std::fprintf(stderr, "usage: sim-idioms sim | pack DIR --arch=A | gpu DIR\n");
  return 2;
}
