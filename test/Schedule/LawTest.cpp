// SPDX-License-Identifier: Apache-2.0
/// \file
/// The checker's law, on random programs: it accepts what the scheduler makes,
/// which is safe, and rejects every change that makes it unsafe. Whether
/// something is safe is the oracle's word.

#include "Mutate.h"
#include "Oracle.h"
#include "RandomProgram.h"
#include "Support.h"

#include "gtest/gtest.h"

#include <map>

using namespace mega;
using namespace mega::test;

namespace {

constexpr int kGraphs = 2000;
constexpr int kUnsafe = 2000;

/// Graph number `seed`, partitioned and scheduled: by barriers, or by counters
/// of few or many tiles.
mlir::OwningOpRef<mlir::ModuleOp> schedule(Session &session, uint64_t seed) {
  auto module = session.parse(randomProgram(seed, 2 + int(seed % 5)));
  if (!module)
    return module;
  SchedulePhasesPassOptions options;
  options.sync =
      seed % 4 == 0 ? Synchronization::Barriers : Synchronization::Counters;
  options.waitLimit = seed % 3 == 0 ? 16 : 64;
  bool done = session.run(*module, [&](mlir::PassManager &pm) {
    pm.addPass(createPartitionPass());
    pm.addPass(createVerifyStagesPass());
    pm.addPass(createSchedulePhasesPass(options));
  });
  return done ? std::move(module) : mlir::OwningOpRef<mlir::ModuleOp>();
}

bool plan(Session &session, mlir::ModuleOp module) {
  return session.run(module, [](mlir::PassManager &pm) {
    pm.addPass(createPlanMemoryPass());
  });
}

bool accepts(Session &session, mlir::ModuleOp module) {
  return session.run(module, [&](mlir::PassManager &pm) {
    pm.addPass(createVerifySchedulePass());
    pm.addPass(createVerifyKernelPass());
  });
}

TEST(ScheduleLaw, WhatTheSchedulerMakesIsSafeAndAccepted) {
  Session session;
  int counters = 0, barriers = 0;
  for (uint64_t seed = 0; seed < kGraphs; ++seed) {
    auto module = schedule(session, seed);
    ASSERT_TRUE(module) << "seed " << seed << ": "
                        << session.getReport().message << "\n"
                        << randomProgram(seed, 2 + int(seed % 5));
    EXPECT_TRUE(accepts(session, *module))
        << "seed " << seed << ": " << session.getReport().message;
    EXPECT_EQ(whyUnsafe(containerOf(*module)), "") << "seed " << seed;
    ASSERT_TRUE(plan(session, *module)) << "seed " << seed;
    EXPECT_TRUE(accepts(session, *module))
        << "seed " << seed << ": " << session.getReport().message;
    module->walk([&](WaitOp) { ++counters; });
    module->walk([&](GridBarrierOp) { ++barriers; });
  }
  // The graphs are worth something.
  EXPECT_GT(counters, kGraphs / 4);
  EXPECT_GT(barriers, kGraphs / 2);
}

TEST(ScheduleLaw, UnsafeSchedulesAreRejected) {
  Session session;
  std::mt19937_64 random(1);
  std::map<std::string, int> unsafe, safe;
  int total = 0;
  for (uint64_t seed = 0; total < kUnsafe && seed < 4 * kGraphs; ++seed) {
    auto original = schedule(session, seed);
    ASSERT_TRUE(original);
    for (int number = 0; number < kMutations; ++number) {
      auto mutation = Mutation(number);
      mlir::OwningOpRef<mlir::ModuleOp> module = original->clone();
      if (mutation == Mutation::ShareBytes) {
        ASSERT_TRUE(plan(session, *module));
      }
      if (!mutate(containerOf(*module), mutation, random))
        continue;
      // The op verifiers count, and come first.
      bool accepted = accepts(session, *module);
      Session::Report report = session.getReport();
      std::string reason = mlir::succeeded(mlir::verify(*module))
                               ? whyUnsafe(containerOf(*module))
                               : "malformed";
      if (reason.empty()) {
        ++safe[describe(mutation)];
        continue;
      }
      ++unsafe[describe(mutation)];
      ++total;
      ASSERT_FALSE(accepted)
          << "seed " << seed << ", " << describe(mutation) << ": " << reason;
      EXPECT_TRUE(report.located) << report.message;
      EXPECT_GE(report.notes, 1) << report.message;
    }
  }
  EXPECT_GE(total, kUnsafe);
  for (int number = 0; number < kMutations; ++number) {
    const char *name = describe(Mutation(number));
    std::printf("  %-14s %5d unsafe, all rejected; %5d safe\n", name,
                unsafe[name], safe[name]);
    // A second reset never makes a schedule unsafe where the first is right,
    // unless it falls between signals and waits.
    EXPECT_GT(unsafe[name], 0) << name;
  }
}

} // namespace
