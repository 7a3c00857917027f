// SPDX-License-Identifier: Apache-2.0
/// \file
/// Counters between tiles, on a kernel written by hand: what is right passes,
/// and every way of making it wrong is caught.

#include "Mutants.h"
#include "TinyKernel.h"

#include <algorithm>
#include <set>

using namespace megalith;
using Kind = SimReport::Kind;

namespace {

const SimShape grid = {3, 64, 0};

/// Two CTAs make a tile, half each; every CTA adds up two tiles, each as soon
/// as it is there. Tile t's counter is word 32 t of the workspace, and the
/// tiles lie behind the counters; the grid barrier is the last word.
const char *const body = R"(
    mega::u32 *const words = reinterpret_cast<mega::u32 *>(p.workspace);
    mega::u32 *const grid = words + 255;
    mega::atPhase(0);
    for (int tile = 0; tile < 6; ++tile) {
      const int half = (blockIdx.x + tile) % gridDim.x;
      if (half == 2)
        continue;
      mega::atTile(tile);
      if (threadIdx.x < 4)
        p.workspace[200 + tile * 8 + half * 4 + threadIdx.x] =
            p.constants[tile * 8 + half * 4 + threadIdx.x];
      __syncthreads();
      if (threadIdx.x == 0)
        mega::Counter::add(words + 32 * tile, 1);
    }
    mega::atStage(1);
    int sum = 0;
    for (int tile = (blockIdx.x + 1) % 3; tile < 6; tile += gridDim.x) {
      mega::atTile(tile);
      mega::Counter::wait(words + 32 * tile, 2);
      sum = sum * 100 + p.workspace[200 + tile * 8 + threadIdx.x % 8];
    }
    p.output[blockIdx.x * 64 + threadIdx.x] = sum;
    gridBarrier(grid);
    mega::atPhase(1);
    if (blockIdx.x == 0)
      if (threadIdx.x < 6)
        mega::Counter::reset(words + 32 * threadIdx.x);)";

const char *const phases = R"(
  static __device__ void schedule() {
    mega::atPhase(0);
    // make (tiles.mlir:1)
    mega::atStage(0);
    // add (tiles.mlir:2)
    mega::atStage(1);
    mega::atPhase(1);
    // reset (tiles.mlir:3)
    mega::atStage(0);
  }
#if 0 // as in the table of operands
    mega::inWorkspace(0), // make -> add
#endif
)";

std::string counterText() {
  return TinyKernel::textFor(
      body, idiomText("grid_barrier.cuh") + idiomText("counter.cuh"), phases);
}

/// Three launches of one history, or those up to the first with a report.
SimRun launches(TinyKernel &kernel, SimOptions options,
                std::vector<int> *outputs = nullptr) {
  for (int i = 0; i < 256; ++i)
    kernel.constants()[i] = 3 * i + 1;
  SimRun run;
  for (int launch = 0; launch < 3 && run.reports.empty(); ++launch) {
    run = kernel.run(options);
    if (outputs)
      outputs->insert(outputs->end(), kernel.output(), kernel.output() + 192);
  }
  return run;
}

std::string edited(const std::string &from, const std::string &to) {
  std::string text = counterText();
  const size_t at = text.rfind(from);
  EXPECT_NE(at, std::string::npos) << from;
  return at == std::string::npos ? text : text.replace(at, from.size(), to);
}

SimRun runEdited(const std::string &from, const std::string &to,
                 size_t maxReports = 8) {
  TinyKernel kernel = TinyKernel::ofText(edited(from, to), grid, {});
  return launches(kernel, {0, SimPolicy::RoundRobin, maxReports});
}

TEST(Counters, RightUnderEveryPolicy) {
  TinyKernel kernel = TinyKernel::ofText(counterText(), grid, {});
  for (auto [name, policy] : simPolicies())
    for (uint64_t seed = 0; seed < 4; ++seed) {
      std::vector<int> outputs;
      SimRun run = launches(kernel, {seed, policy, 8}, &outputs);
      ASSERT_TRUE(run.reports.empty()) << name << run.reports.front().text;
      // CTA 2 adds tiles 0 and 3.
      EXPECT_EQ(outputs[128 + 5], (3 * 5 + 1) * 100 + 3 * (24 + 5) + 1);
      EXPECT_EQ(outputs[128 + 5], outputs[2 * 192 + 128 + 5]);
    }
}

TEST(Counters, DeadlockNamesOpTileCounterValueAndTarget) {
  expectReport(
      runEdited("mega::Counter::add(words + 32 * tile, 1);",
                "if (tile != 4 || blockIdx.x == 0) "
                "mega::Counter::add(words + 32 * tile, 1);"),
      Kind::Deadlock,
      {"1 thread of CTA 0 (tile 4) wait for the counter at byte 512 of "
       "workspace, which is 1, expected at least 2",
       "phase 0, stage 1: add (tiles.mlir:2)\n    counter 4 of make -> add",
       "CTAs 1, 2 wait for the grid barrier at byte 1020 of workspace"});
  expectReport(runEdited("mega::Counter::wait(words + 32 * tile, 2)",
                         "mega::Counter::wait(words + 32 * tile, 3)"),
               Kind::Deadlock,
               {"CTAs 0 (tile 1), 1 (tile 2), 2 (tile 0)",
                "which is 2, expected at least 3"});
}

TEST(Counters, ResetsAreOrdered) {
  // By two CTAs, by nobody, and before all have waited.
  expectReport(runEdited("if (blockIdx.x == 0)\n", "if (blockIdx.x <= 1)\n"),
               Kind::Race, {"atomic store", "two owners"});
  EXPECT_FALSE(
      runEdited("mega::Counter::reset(words + 32 * threadIdx.x);", "(void)0;")
          .reports.empty());
  EXPECT_FALSE(runEdited("gridBarrier(grid);", "").reports.empty());
  // Ordinary stores do as well, if they are ordered.
  EXPECT_TRUE(runEdited("mega::Counter::reset(words + 32 * threadIdx.x);",
                        "words[32 * threadIdx.x] = 0;")
                  .reports.empty());
  expectReport(runEdited("int sum = 0;",
                         "int sum = 0; if (threadIdx.x == 1) words[160] = 0;",
                         1),
               Kind::Race, {"byte 640 of workspace"});
}

TEST(Counters, RacesNameTheStagesOfOnePhase) {
  expectReport(runEdited("ld.acquire.gpu", "ld.relaxed.gpu", 1), Kind::Race,
               {"phase 0, stage 0: make (tiles.mlir:1)\n",
                "phase 0, stage 1: add (tiles.mlir:2)\n"});
}

/// All CTAs wait for CTA 0's signal, and CTA 0 takes it back.
SimRun takenBack(const std::string &between, SimPolicy policy) {
  TinyKernel kernel(R"(
    mega::u32 *const words = reinterpret_cast<mega::u32 *>(p.workspace);
    if (blockIdx.x == 0 && threadIdx.x == 0)
      mega::Counter::add(words + 32, 1);
    mega::Counter::wait(words + 32, 1);)" +
                        between + R"(
    if (blockIdx.x == 0 && threadIdx.x == 0)
      mega::Counter::reset(words + 32);)",
                    grid,
                    idiomText("grid_barrier.cuh") + idiomText("counter.cuh"));
  return kernel.run({0, policy, 8});
}

TEST(Counters, ResetBeforeAllHaveWaited) {
  for (auto [name, policy] : simPolicies()) {
    expectReport(takenBack("", policy), Kind::Race,
                 {"wait by CTA ", "atomic store by CTA 0",
                  "a reset that comes too early"});
    SimRun right = takenBack("gridBarrier(words);", policy);
    EXPECT_TRUE(right.reports.empty()) << right.reports.front().text;
  }
}

TEST(Counters, LivelockNamesTheCounter) {
  SimCompileOptions plain;
  plain.races = false;
  TinyKernel kernel(R"(
    mega::u32 *const words = reinterpret_cast<mega::u32 *>(p.workspace);
    mega::u32 *const own = words + 32 * blockIdx.x;
    if (blockIdx.x == 0 && threadIdx.x == 0)
      mega::Counter::add(own, 1);
    for (;;) {
      mega::Counter::wait(own, 1);
      if (threadIdx.x == 0) {
        mega::Counter::reset(own);
        mega::Counter::add(words + 32 * (1 - blockIdx.x), 1);
      }
    })",
                    {2, 32, 0}, idiomText("counter.cuh"), plain);
  expectReport(kernel.run(), Kind::Livelock,
               {"has waited 1048576 times for the counter at byte "});
}

/// Mutants that change nothing, with the reason.
const std::set<std::string> equivalent = {
    // Grid barriers, or a launch's end, order a reset and all else.
    "cta-for-gpu Counter::reset #1",
    // Only the thread that arrives has touched what the resets touch.
    "drop-syncthreads GridBarrier::arrive #1",
    // Each counter has one CTA that waits for it, and has seen all signals.
    "reset-early kernel #1",
};

TEST(Counters, EveryMutantIsCaught) {
  std::vector<std::string> missing;
  std::vector<Mutant> mutants = makeMutants(counterText(), 90, missing);
  EXPECT_TRUE(missing.empty()) << missing.front();
  std::set<std::string> kinds;
  for (const Mutant &mutant : mutants) {
    kinds.insert(mutant.name.substr(0, mutant.name.find(' ')));
    SimCompileOptions options;
    options.replacements = mutant.replacements;
    const SimPolicy policies[] = {SimPolicy::RoundRobin, SimPolicy::Reverse,
                                  SimPolicy::Starve};
    const bool caught = std::any_of(
        std::begin(policies), std::end(policies), [&](SimPolicy policy) {
          TinyKernel kernel = TinyKernel::ofText(mutant.text, grid, options);
          return !launches(kernel, {1, policy, 1}).reports.empty();
        });
    EXPECT_EQ(caught, equivalent.count(mutant.name) == 0) << mutant.name;
  }
  for (const char *kind : {"drop-barrier", "drop-signal", "drop-wait",
                           "drop-reset", "target-lower", "target-higher",
                           "signal-twice", "reset-early", "relaxed-for-release",
                           "relaxed-for-acquire", "cta-for-gpu", "two-owners"})
    EXPECT_EQ(kinds.count(kind), 1u) << kind;
}

} // namespace
