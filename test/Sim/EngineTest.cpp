// SPDX-License-Identifier: Apache-2.0
/// \file
/// One rule of the simulator a test, on kernels of a few lines.

#include "TinyKernel.h"

#include "../engine/Scheduler.h"

#include <unistd.h>

#include <filesystem>
#include <fstream>

using namespace megalith;
using Kind = SimReport::Kind;

namespace {

const SimShape oneCta = {1, 64, 1024}, twoCtas = {2, 64, 1024};

std::string barrierIdiom() { return idiomText("grid_barrier.cuh"); }

TEST(Races, BarrierOrdersSharedMemory) {
  TinyKernel kernel(R"(
    int *s = reinterpret_cast<int *>(shared);
    s[threadIdx.x] = threadIdx.x;
    __syncthreads();
    p.output[threadIdx.x] = s[63 - threadIdx.x];)",
                    oneCta);
  SimRun run = kernel.run();
  EXPECT_TRUE(run.reports.empty()) << run.reports.front().text;
  EXPECT_EQ(kernel.output()[3], 60);
}

TEST(Races, MissingBarrierWithinACta) {
  TinyKernel kernel(R"(
    int *s = reinterpret_cast<int *>(shared);
    s[threadIdx.x] = 0;
    __syncthreads();
    s[threadIdx.x] = threadIdx.x;
    p.output[threadIdx.x] = s[threadIdx.x ^ 32];)",
                    oneCta);
  expectReport(kernel.run(), Kind::Race,
               {"no CTA barrier stands between them", "kernel.cu:"});
}

TEST(Races, LanesNeedSyncwarpAndShufflesAreNone) {
  const char *body = R"(
    int *s = reinterpret_cast<int *>(shared);
    s[threadIdx.x] = threadIdx.x;
    %
    p.output[threadIdx.x] = s[threadIdx.x ^ 1];)";
  auto with = [&](const std::string &between) {
    std::string text = body;
    return text.replace(text.find('%'), 1, between);
  };
  EXPECT_TRUE(TinyKernel(with("__syncwarp();"), oneCta).run().reports.empty());
  expectReport(TinyKernel(with("p.state[threadIdx.x] = "
                               "__shfl_xor_sync(~0u, int(threadIdx.x), 1);"),
                          oneCta)
                   .run(),
               Kind::Race, {"no __syncwarp"});
}

TEST(Races, GridBarrierOrdersCtas) {
  TinyKernel kernel(R"(
    p.workspace[64 + blockIdx.x] = 5;
    gridBarrier(p.workspace);
    p.output[blockIdx.x] = p.workspace[64 + 1 - blockIdx.x];)",
                    {2, 32, 0}, barrierIdiom());
  // All lanes write the same word: that is a race of its own.
  expectReport(kernel.run(), Kind::Race, {"no __syncwarp"});
  TinyKernel once(R"(
    if (threadIdx.x == 7)
      p.workspace[64 + blockIdx.x] = 5;
    gridBarrier(p.workspace);
    if (threadIdx.x == 0)
      p.output[blockIdx.x] = p.workspace[64 + 1 - blockIdx.x];)",
                  twoCtas, barrierIdiom());
  for (auto [name, policy] : simPolicies())
    for (uint64_t seed = 0; seed < 4; ++seed) {
      SimRun run = once.run({seed, policy, 8});
      EXPECT_TRUE(run.reports.empty()) << name << run.reports.front().text;
      EXPECT_EQ(once.output()[0], 5);
    }
}

TEST(Races, BetweenTheHalvesOfABarrierOnlyWhatIsOnesOwn) {
  auto run = [](const char *cta) {
    const std::string body = std::string(R"(
    mega::u32 before;
    const mega::GridBarrier barrier(reinterpret_cast<mega::u8 *>(p.workspace),
                                    reinterpret_cast<mega::u8 *>(&before));
    if (threadIdx.x == 0)
      p.state[blockIdx.x] = 5;
    barrier.arrive();
    int value = 0;
    if (threadIdx.x == 0)
      value = p.state[)") + cta +
                             R"(];
    barrier.wait();
    if (threadIdx.x == 0)
      p.output[blockIdx.x] = value;)";
    return TinyKernel(body, twoCtas, barrierIdiom()).run();
  };
  EXPECT_TRUE(run("blockIdx.x").reports.empty());
  expectReport(run("(1 - blockIdx.x)"), Kind::Race, {"have no order"});
}

TEST(Races, WeakGridBarrierIsReportedThoughValuesAreRight) {
  const std::string body = R"(
    if (threadIdx.x == 0)
      p.workspace[64 + blockIdx.x] = 5;
    gridBarrier(p.workspace);
    if (threadIdx.x == 0)
      p.output[blockIdx.x] = p.workspace[64 + 1 - blockIdx.x];)";
  for (auto [from, to] : {std::pair<const char *, const char *>{
                              "add.release.gpu", "add.relaxed.gpu"},
                          {"ld.acquire.gpu", "ld.relaxed.gpu"},
                          {"add.release.gpu", "add.release.cta"}}) {
    std::string idiom = barrierIdiom();
    idiom.replace(idiom.find(from), std::string(from).size(), to);
    expectReport(TinyKernel(body, twoCtas, idiom).run(), Kind::Race,
                 {"too weak"});
  }
}

TEST(Races, ConstantLoadOfWrittenData) {
  TinyKernel kernel(R"(
    if (threadIdx.x < 16) p.state[threadIdx.x] = 1;
    __syncthreads();
    if (threadIdx.x == 20)
      p.output[0] = mega::loadConstant16(p.state).x;)",
                    oneCta);
  expectReport(kernel.run(), Kind::ConstantWritten, {"ld.global.nc"});
}

TEST(Poison, UninitialisedSharedAndStaleWorkspace) {
  expectReport(TinyKernel("p.output[threadIdx.x] = "
                          "reinterpret_cast<int *>(shared)[threadIdx.x];",
                          oneCta)
                   .run(),
               Kind::Poison, {"shared memory of CTA 0"});
  // What the last launch left is no value.
  TinyKernel kernel(R"(
    if (p.state[0] == 0 && threadIdx.x == 0) p.workspace[9] = 4;
    if (p.state[0] == 1 && threadIdx.x == 0) p.output[0] = p.workspace[9];)",
                    oneCta);
  EXPECT_TRUE(kernel.run().reports.empty());
  kernel.state()[0] = 1;
  expectReport(kernel.run(), Kind::Poison, {"byte 36 of workspace"});
}

TEST(Bounds, GapsAndConstants) {
  expectReport(TinyKernel("p.state[256 + threadIdx.x] = 1;", oneCta).run(),
               Kind::OutOfBounds, {"which has 1024"});
  expectReport(TinyKernel("if (threadIdx.x == 1) "
                          "const_cast<int *>(p.constants)[0] = 1;",
                          oneCta)
                   .run(),
               Kind::OutOfBounds, {"constants"});
}

TEST(Deadlock, NamesEveryCtaAndTheVariable) {
  TinyKernel kernel(R"(
    if (blockIdx.x != 1)
      gridBarrier(p.workspace);)",
                    {3, 64, 0}, barrierIdiom());
  expectReport(kernel.run(), Kind::Deadlock,
               {"2 threads of CTAs 0, 2 wait for the grid barrier at byte 0 of "
                "workspace, which is 0x7fffffff, expected bit 31 to be set",
                "126 threads of CTAs 0, 2 wait in __syncthreads",
                "64 threads of CTA 1 are done"});
}

/// Each CTA runs three phases of two tiles, and waits for something in one.
const char *const phases = R"(
  static __device__ void schedule() {
    mega::atPhase(0);
    // linear first (a.mlir:1)
    mega::atStage(0);
    mega::atPhase(1);
    // linear second (a.mlir:2)
    mega::atStage(0);
    mega::atPhase(2);
    // linear third (a.mlir:3)
    mega::atStage(0);
  }
)";

TEST(Deadlock, NamesOpAndTileByTheScheduleNotByBarriersPassed) {
  // The barrier after phase 0 is missing, and CTA 1 skips the one after
  // phase 1.
  TinyKernel kernel(R"(
    for (int phase = 0; phase < 3; ++phase) {
      mega::atPhase(phase);
      for (int tile = blockIdx.x; tile < 2; tile += gridDim.x)
        mega::atTile(tile);
      if (phase == 1 && blockIdx.x != 1)
        gridBarrier(p.workspace);
    })",
                    {2, 32, 0}, barrierIdiom(), {}, phases);
  expectReport(kernel.run(), Kind::Deadlock,
               {"1 thread of CTA 0 wait for the grid barrier",
                "phase 1: linear second (a.mlir:2)",
                "32 threads of CTA 1 are done"});
  TinyKernel ring(R"(
    mega::UnitRing<2, 1, 64, 1> ring;
    ring.init(shared);
    mega::atPhase(2);
    mega::atTile(4 + blockIdx.x);
    ring.wait();)",
                  {2, 32, 1024}, idiomText("unit_ring.cuh"), {}, phases);
  expectReport(ring.run(), Kind::Deadlock,
               {"32 threads of CTA 0 (tile 4) wait for phase 0 of the mbarrier "
                "at byte 0 of shared memory of CTA 0",
                "32 threads of CTA 1 (tile 5) wait",
                "phase 2: linear third (a.mlir:3)"});
}

TEST(Races, NamesBothPhasesEvenPastTheTwoHundredFiftySixth) {
  const char *const body = R"(
    mega::atPhase(blockIdx.x == 0 ? 254 + p.state[0] : 254);
    if (threadIdx.x == 0)
      p.workspace[64] = 1;)";
  for (auto [shift, name] : {std::pair<int, const char *>{0, "phase 254\n"},
                             {1, "phase 255\n"},
                             {100, "phase 354\n"}}) {
    TinyKernel kernel(body, {2, 32, 0}, barrierIdiom());
    kernel.state()[0] = shift;
    SimRun run = kernel.run();
    ASSERT_EQ(run.reports.size(), 1u);
    std::string text = run.reports.front().text + "\n";
    EXPECT_NE(text.find("phase 254\n"), std::string::npos) << text;
    EXPECT_NE(text.find(name), std::string::npos) << text;
  }
}

TEST(Deadlock, BarrierThatHalfOfTheThreadsSkip) {
  expectReport(
      TinyKernel("if (threadIdx.x < 32) __syncthreads();", oneCta).run(),
      Kind::Deadlock, {"32 threads of CTA 0 wait in __syncthreads"});
}

TEST(Divergence, LanesInDifferentInstructions) {
  expectReport(TinyKernel(R"(
    if (threadIdx.x % 2) __syncwarp();
    else p.output[threadIdx.x] = __shfl_sync(~0u, 1, 0);)",
                          oneCta)
                   .run(),
               Kind::Divergence, {"a shuffle", "__syncwarp"});
}

TEST(AsyncCopy, RingOrdersCopiesAndReads) {
  const std::string ring = idiomText("unit_ring.cuh");
  const std::string body = R"(
    mega::UnitRing<2, 1, 64, 2> ring;
    ring.init(shared);
    __syncthreads();
    const mega::u8 *from = reinterpret_cast<const mega::u8 *>(p.constants);
    int sum = 0;
    ring.issue(from, 64);
    ring.issue(from + 64, 64);
    for (int i = 0; i < 6; ++i) {
      const int *burst = reinterpret_cast<const int *>(ring.wait());
      sum += burst[threadIdx.x % 16];
      ring.release();
      if (i + 2 < 6) ring.issue(from + 64 * (i + 2), 64);
    }
    p.output[threadIdx.x] = sum;)";
  for (auto [name, policy] : simPolicies()) {
    SimRun run = TinyKernel(body, oneCta, ring).run({1, policy, 8});
    EXPECT_TRUE(run.reports.empty()) << name << run.reports.front().text;
  }
  auto without = [&](const std::string &part, const std::string &instead) {
    std::string text = body;
    text.replace(text.find(part), part.size(), instead);
    return TinyKernel(text, oneCta, ring).run();
  };
  // Lane 0 runs ahead by two phases of the mbarrier, and the others' parity
  // comes no more.
  expectReport(without("ring.release();", "++ring.taken;"), Kind::Deadlock,
               {"of the mbarrier at byte 0 of shared memory"});
  // What comes first, a read before or after the copy, is the schedule's
  // choice.
  EXPECT_FALSE(without("ring.wait()", "ring.base").reports.empty());
}

TEST(AsyncCopy, MbarriersMustBeShownToCopies) {
  std::string ring = idiomText("unit_ring.cuh");
  const std::string fence = "fence.mbarrier_init.release.cluster;";
  ring.replace(ring.find(fence), fence.size(), "fence.acq_rel.cta;");
  expectReport(TinyKernel(R"(
    mega::UnitRing<1, 1, 64, 2> ring;
    ring.init(shared);
    ring.issue(reinterpret_cast<const mega::u8 *>(p.constants), 64);
    p.output[threadIdx.x] = *ring.wait();)",
                          oneCta, ring)
                   .run(),
               Kind::Race, {"no fence.mbarrier_init"});
}

TEST(AsyncCopy, FormForSm80) {
  SimCompileOptions sm80;
  sm80.capability = 80;
  const std::string body = R"(
    mega::UnitRing<3, 1, 1024, 2> ring;
    ring.init(shared);
    __syncthreads();
    const mega::u8 *from = reinterpret_cast<const mega::u8 *>(p.constants);
    int sum = 0;
    ring.issue(from, 512);
    ring.issue(from + 16, 992);
    ring.issue(from + 32, 64);
    for (int i = 0; i < 6; ++i) {
      const int *burst = reinterpret_cast<const int *>(ring.wait());
      sum += (i + 1) * burst[15 - threadIdx.x % 16];
      ring.release();
      if (i + 3 < 6) ring.issue(from + 16 * (i + 3), 256);
    }
    p.output[threadIdx.x] = sum;)";
  const std::string idiom = idiomText("unit_ring.cuh");
  const SimShape shape = {1, 64, 6400};
  std::vector<int> sums;
  for (int capability : {90, 80})
    for (auto [name, policy] : simPolicies()) {
      SimCompileOptions options;
      options.capability = capability;
      TinyKernel kernel(body, shape, idiom, options);
      for (int i = 0; i < 256; ++i)
        kernel.constants()[i] = i * i;
      SimRun run = kernel.run({1, policy, 8});
      ASSERT_TRUE(run.reports.empty()) << name << run.reports.front().text;
      std::vector<int> found(kernel.output(), kernel.output() + 64);
      if (sums.empty())
        sums = found;
      EXPECT_EQ(found, sums) << name << capability;
    }
  // sum over i of (i + 1) * (4 i + 15 - t)^2
  EXPECT_EQ(sums[0], 17605);
  auto with = [&](const std::string &text, const std::string &from,
                  const std::string &to) {
    std::string changed = text;
    changed.replace(changed.find(from), from.size(), to);
    return changed;
  };
  // Too young a group; no order among lanes; a slot refilled while it is read.
  EXPECT_FALSE(
      TinyKernel(with(body, "ring.wait()", "ring.base"), shape, idiom, sm80)
          .run()
          .reports.empty());
  const size_t form = idiom.find("cp.async.wait_group 3");
  std::string unsynced = idiom;
  unsynced.replace(unsynced.find("    __syncwarp();", form), 17, "    ;");
  EXPECT_FALSE(TinyKernel(body, shape, unsynced, sm80).run().reports.empty());
  expectReport(TinyKernel(with(body, "ring.release();", "++ring.taken;"), shape,
                          idiom, sm80)
                   .run(),
               Kind::Race);
}

TEST(AsyncCopy, GenericWritesNeedAProxyFence) {
  const std::string ring = idiomText("unit_ring.cuh");
  auto run = [&](const char *fence) {
    return TinyKernel(std::string(R"(
    mega::UnitRing<2, 1, 64, 2> ring;
    ring.init(shared);
    reinterpret_cast<int *>(shared + 32)[threadIdx.x % 64] = 1;)") +
                          fence + R"(
    __syncthreads();
    ring.issue(reinterpret_cast<const mega::u8 *>(p.constants), 64);
    p.output[threadIdx.x] = *ring.wait();
    ring.release();)",
                      oneCta, ring)
        .run();
  };
  SimRun fenced = run("mega::fenceAsyncProxy();");
  EXPECT_TRUE(fenced.reports.empty()) << fenced.reports.front().text;
  expectReport(run(""), Kind::Race, {"fence.proxy.async"});
}

TEST(AsyncCopy, SourceIsReadUntilTheWait) {
  auto run = [&](const char *before, const char *behind) {
    return TinyKernel(std::string(R"(
    const bool first = blockIdx.x == 0 && threadIdx.x == 0;
    if (first) {
      mega::CpAsync::copy16(shared, p.state);
      mega::CpAsync::commit();)") +
                          before + R"(
    }
    gridBarrier(p.workspace);
    if (first) {)" + behind +
                          R"(
    }
    if (blockIdx.x == 1 && threadIdx.x == 0) p.state[0] = 1;)",
                      {2, 64, 1024},
                      barrierIdiom() + idiomText("async_copy.cuh"))
        .run();
  };
  SimRun waited = run("mega::CpAsync::wait<0>();", "");
  EXPECT_TRUE(waited.reports.empty()) << waited.reports.front().text;
  expectReport(run("", "mega::CpAsync::wait<0>();"), Kind::Race);
  expectReport(run("mega::CpAsync::wait<1>();", "mega::CpAsync::wait<0>();"),
               Kind::Race);
}

TEST(AsyncCopy, OrdinaryWriteOverAnMbarrier) {
  expectReport(TinyKernel(R"(
    mega::UnitRing<2, 1, 64, 2> ring;
    ring.init(shared);
    __syncthreads();
    if (threadIdx.x == 0) reinterpret_cast<int *>(shared)[3] = 0;)",
                          oneCta, idiomText("unit_ring.cuh"))
                   .run(),
               Kind::OutOfBounds, {"over the mbarrier at byte 8"});
}

TEST(Scheduler, SameSeedSameRun) {
  TinyKernel kernel(R"(
    if (threadIdx.x == 0) p.workspace[64 + blockIdx.x] = 1;
    gridBarrier(p.workspace);
    p.output[blockIdx.x * 64 + threadIdx.x] = p.workspace[64 + 1 - blockIdx.x];)",
                    twoCtas, barrierIdiom());
  SimRun a = kernel.run({7, SimPolicy::Random, 8});
  SimRun b = kernel.run({7, SimPolicy::Random, 8});
  EXPECT_EQ(a.switches, b.switches);
  EXPECT_EQ(a.accesses, b.accesses);
}

/// CTAs in the order in which a policy lets them run, each to its end: one warp
/// each.
std::vector<unsigned> order(sim::Scheduler &scheduler, unsigned first) {
  std::vector<unsigned> ctas;
  std::optional<sim::ThreadKey> at = sim::ThreadKey(first, 0, 0);
  while ((at = scheduler.next(*at))) {
    if (ctas.empty() || ctas.back() != at->cta())
      ctas.push_back(at->cta());
    scheduler.block(*at);
  }
  return ctas;
}

TEST(Scheduler, PoliciesChooseWhoIsLast) {
  using Order = std::vector<unsigned>;
  sim::Scheduler scheduler(4, 1);
  auto run = [&](SimPolicy policy, uint64_t seed) {
    scheduler.start(policy, seed);
    return order(scheduler, 0);
  };
  EXPECT_EQ(run(SimPolicy::RoundRobin, 0), (Order{0, 1, 2, 3}));
  EXPECT_EQ(run(SimPolicy::Starve, 1), (Order{0, 2, 3, 1}));
  EXPECT_EQ(run(SimPolicy::Starve, 4), (Order{1, 2, 3, 0}));
  EXPECT_EQ(run(SimPolicy::Reverse, 0), (Order{0, 3, 2, 1}));
  // Whoever completes a barrier goes on after all whom it let go on.
  scheduler.start(SimPolicy::LastArriver, 0);
  EXPECT_TRUE(scheduler.arrivedLast(2));
  EXPECT_EQ(order(scheduler, 2), (Order{3, 0, 1, 2}));
  scheduler.start(SimPolicy::RoundRobin, 0);
  EXPECT_FALSE(scheduler.arrivedLast(2));
}

TEST(Compile, TornKernelInTheCacheIsMadeAgain) {
  namespace fs = std::filesystem;
  const fs::path cache = fs::temp_directory_path() /
                         ("megalith-torn-" + std::to_string(::getpid()));
  SimCompileOptions options;
  options.cacheDirectory = cache.string();
  const std::string text = TinyKernel::textFor("p.output[0] = 1;", "", "");
  ASSERT_TRUE(SimKernel::compile(text, options));
  size_t kept = 0;
  for (const fs::directory_entry &entry :
       fs::recursive_directory_iterator(cache))
    if (entry.path().extension() == ".so") {
      ++kept;
      std::ofstream torn(entry.path(), std::ios::trunc);
      torn << "half of";
    }
  EXPECT_EQ(kept, 1u);
  auto again = SimKernel::compile(text, options);
  EXPECT_TRUE(again) << again.status().message();
  fs::remove_all(cache);
}

TEST(Compile, IdiomWithoutTwin) {
  auto kernel = SimKernel::compile(
      "#ifndef MEGA_HOST_IDIOMS\n//===----- new_idiom.cuh -----===//\n"
      "#endif // MEGA_HOST_IDIOMS\nstruct Params {};\n"
      "extern \"C\" __global__ void k(const Params p) {}\n");
  ASSERT_FALSE(kernel);
  EXPECT_NE(kernel.status().message().find("new_idiom.cuh"), std::string::npos);
}

} // namespace
