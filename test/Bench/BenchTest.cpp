// SPDX-License-Identifier: Apache-2.0

#include "Calibrate.h"
#include "FakeDriver.h"
#include "FakeGpu.h"
#include "Measure.h"
#include "Support.h"

#include <filesystem>

using namespace megalith::bench;
using json = nlohmann::ordered_json;

namespace {

/// The sample manifest with a schedule of two phases; `stamps` adds the probe
/// of an instrumented kernel.
std::string benchManifest(bool stamps) {
  std::string text = replaced(sampleManifest(), R"("schedule": {})",
                              R"("schedule": {"phases": 2, "barriers": 1,
         "phase_list": [{"index": 0, "stages": ["a"], "bytes": 3000000},
                        {"index": 1, "stages": ["b", "c"], "bytes": 1000000}],
         "bytes_per_step": {"weights": 4000000, "state": 48,
                            "cache_per_token": 16}})");
  if (!stamps)
    return text;
  text = replaced(text, R"("probes": [)",
                  R"("probes": [{"name": "megalith.stamps", "dtype": "i32",
                     "shape": [2, 100, 2], "offset": 256}, )");
  return replaced(text, R"("workspace": {"bytes": 256})",
                  R"("workspace": {"bytes": 1856})");
}

class BenchTest : public ::testing::Test {
protected:
  /// Writes a bundle and gives its path.
  std::string bundle(const std::string &name, const std::string &manifest) {
    std::string path = folder / name;
    std::filesystem::create_directory(path);
    writeText(path + "/manifest.json", manifest);
    writeText(path + "/kernel.sm_80.cubin", sampleCubin("cubin for sm_80"));
    writeText(path + "/kernel.sm_90a.cubin", sampleCubin("cubin for sm_90a"));
    return path;
  }

  json measure(const Options &options) {
    json result;
    measureBundles(gpu, options, [&](const Session &session) {
      result = jsonOf(session);
      text = textOf(session);
    });
    return result;
  }

  /// The message of the error that measuring gives.
  std::string failure(const Options &options) {
    try {
      measure(options);
    } catch (const BenchError &error) {
      return error.what();
    }
    return "no error";
  }

  Options optionsFor(std::vector<std::string> bundles) {
    Options options;
    options.bundles = std::move(bundles);
    options.contexts = {8, 0};
    options.steps = 20;
    return options;
  }

  TemporaryFolder folder;
  FakeDriverScope driver;
  FakeGpu gpu;
  std::string text;
};

std::vector<std::string> keysOf(const json &object) {
  std::vector<std::string> keys;
  for (auto &[key, value] : object.items())
    keys.push_back(key);
  return keys;
}

using Keys = std::vector<std::string>;

TEST_F(BenchTest, JsonOfTwoBundles) {
  json run = measure(optionsFor(
      {bundle("a", benchManifest(false)), bundle("b", benchManifest(true))}));
  EXPECT_EQ(keysOf(run),
            (Keys{"format", "version", "device", "stream", "bundles"}));
  EXPECT_EQ(run["device"]["sms"], 4);
  EXPECT_EQ(run["device"]["clock_ghz"], 2.0);
  ASSERT_EQ(run["bundles"].size(), 2u);

  const json &a = run["bundles"][0];
  EXPECT_EQ(keysOf(a), (Keys{"bundle", "block", "arch", "ctas", "barriers",
                             "instrumented", "contexts"}));
  EXPECT_EQ(a["barriers"], 1);
  EXPECT_EQ(a["instrumented"], false);
  ASSERT_EQ(a["contexts"].size(), 2u);
  const json &at8 = a["contexts"][0];
  EXPECT_EQ(keysOf(at8), (Keys{"context", "steps", "us", "step_us", "host_us",
                               "bytes", "roofline_us", "roofline_percent"}));
  EXPECT_EQ(at8["context"], 8);
  EXPECT_EQ(at8["steps"], 20);
  EXPECT_EQ(at8["us"], 10.0);
  EXPECT_EQ(at8["bytes"], 4000000 + 48 + 8 * 16);
  EXPECT_EQ(a["contexts"][1]["bytes"], 4000000 + 48);
  // The stream's passes take 10 us too: its rate is its bytes over them.
  double rate = run["stream"]["gbps"];
  EXPECT_NEAR(at8["roofline_us"].get<double>(), 4000176 / rate / 1e3, 1e-9);
  EXPECT_NEAR(at8["roofline_percent"].get<double>(),
              at8["roofline_us"].get<double>() * 10, 1e-9);

  const json &b = run["bundles"][1];
  EXPECT_EQ(b["instrumented"], true);
  const json &table = b["phase_table"];
  EXPECT_EQ(keysOf(table),
            (Keys{"context", "steps", "ctas", "phases", "clocks"}));
  EXPECT_EQ(table["phases"][1]["stages"], (json{"b", "c"}));
  EXPECT_EQ(keysOf(table["phases"][0]["work_us"]),
            (Keys{"min", "median", "max", "mean"}));
  EXPECT_TRUE(table["phases"][1]["wait_us"].is_null());
  EXPECT_EQ(table["clocks"].size(), 2u);
  EXPECT_EQ(table["clocks"][0].size(), 100u);
  EXPECT_NE(text.find("(instrumented)"), std::string::npos);
}

TEST_F(BenchTest, StepsVaryTheInputAndAreAllLaunched) {
  measure(optionsFor({bundle("a", benchManifest(false))}));
  // Two contexts, two rounds (16 and 4): two warm steps, then the steps twice.
  EXPECT_EQ(driver.device.calls["cuLaunchCooperativeKernel"],
            2 * (2 + 2 * 16 + 2 + 2 * 4));
  // Three grids each round, two passes each.
  EXPECT_EQ(gpu.launches["bench_stream_deep"], 4);
  EXPECT_EQ(gpu.launches["bench_stream_wide"], 8);
}

TEST_F(BenchTest, RefusesOtherBatches) {
  Options options = optionsFor({bundle("a", benchManifest(false))});
  options.batch = 4;
  EXPECT_NE(failure(options).find("is compiled for 1 token a step, expected "
                                  "--batch=1, found --batch=4"),
            std::string::npos);
}

TEST_F(BenchTest, RefusesAKernelThatWritesNothing) {
  driver.device.vectorBytes = 0;
  EXPECT_NE(failure(optionsFor({bundle("a", benchManifest(false))}))
                .find("output is all zeros"),
            std::string::npos);
}

TEST_F(BenchTest, RefusesAManifestWithoutBytes) {
  EXPECT_NE(failure(optionsFor({bundle("a", sampleManifest())}))
                .find("does not say what a step moves"),
            std::string::npos);
}

TEST(Phases, ClocksWrapAndPhasesAreMediansOverSteps) {
  // Two phases of two CTAs at 2 GHz; CTA 1's clock wraps in the first phase.
  auto step = [](uint32_t more) {
    uint32_t wraps = UINT32_MAX - 999;
    return std::vector<uint32_t>{0,
                                 2000 + more, // CTA 0: 1 us and more
                                 wraps,
                                 wraps + 6000, // CTA 1: 3 us
                                 8000,
                                 8000 + 4000,
                                 wraps + 8000,
                                 wraps + 8000 + 4000};
  };
  PhaseTable table = tabulate({step(0), step(1000), step(3000)}, 2, 2, 2.0);
  EXPECT_EQ(table.steps, 3);
  EXPECT_DOUBLE_EQ(table.phases[0].work.min, 1.5);
  EXPECT_DOUBLE_EQ(table.phases[0].work.max, 3);
  EXPECT_DOUBLE_EQ(table.phases[0].meanWork, 2.25);
  EXPECT_DOUBLE_EQ(table.phases[0].wait.min, 1);
  EXPECT_DOUBLE_EQ(table.phases[0].wait.max, 2.5);
  EXPECT_DOUBLE_EQ(table.phases[1].work.median, 2);
}

TEST(Statistics, Quantiles) {
  std::vector<double> samples;
  for (int i = 100; i > 0; --i)
    samples.push_back(i);
  EXPECT_EQ(quantile(samples, 0), 1);
  EXPECT_EQ(median(samples), 51);
  EXPECT_EQ(quantile(samples, 0.99), 100);
  EXPECT_EQ(quantile({}, 0.5), 0);
}

TEST(Calibrate, WritesEveryCostAndKeepsTheRest) {
  FakeGpu gpu;
  json machine = calibrate(
      gpu, {{"name", "A card"}, {"threads", 256}, {"costs", {{"fit", 7}}}});
  EXPECT_EQ(machine["name"], "A card");
  EXPECT_EQ(machine["threads"], 256);
  EXPECT_EQ(machine["arch"], "sm_90a");
  EXPECT_EQ(machine["ctas"], 4);
  EXPECT_EQ(machine["shared_bytes"], 232448);
  EXPECT_EQ(machine["calibrated"], true);
  const json &costs = machine["costs"];
  EXPECT_EQ(costs["fit"], 7);
  EXPECT_EQ(costs["clock_ghz"], 2.0);
  EXPECT_EQ(costs["launch_us"], 10.0);
  EXPECT_EQ(keysOf(costs["stream"][0]), (Keys{"mib", "gbps"}));
  EXPECT_EQ(keysOf(costs["in_flight"][0]),
            (Keys{"kib", "gbps", "barrier_us", "edge_us", "flagged_edge_us",
                  "counter_us"}));
  EXPECT_EQ(costs["in_flight"].size(), 8u);
  EXPECT_TRUE(costs.contains("flag_us"));
  EXPECT_NE(summaryOf(machine).find("A card (sm_90a): 2.0 GHz"),
            std::string::npos);
  EXPECT_LE(gpu.largestShared, gpu.own.sharedBytes);
  EXPECT_TRUE(gpu.allocations.empty());
}

TEST(Calibrate, SmallSharedMemoryEndsTheTable) {
  FakeGpu gpu;
  gpu.own.sharedBytes = 48 * 1024;
  json machine = calibrate(gpu, json::object());
  EXPECT_EQ(machine["costs"]["in_flight"].size(), 5u); // 0, 8, 17, 25, 34
  EXPECT_LE(gpu.largestShared, gpu.own.sharedBytes);
}

TEST(Calibrate, RefusesAnotherArch) {
  FakeGpu gpu;
  try {
    calibrate(gpu, {{"arch", "sm_80"}});
    FAIL();
  } catch (const BenchError &error) {
    EXPECT_STREQ(error.what(), "machine file is for arch \"sm_80\", expected "
                               "the device's, sm_90a");
  }
}

} // namespace
