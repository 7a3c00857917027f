// SPDX-License-Identifier: Apache-2.0
/// \file
/// The scheduler's number of barriers is the smallest there is: every way to
/// put the stages of small programs into phases is tried.

#include "Oracle.h"
#include "RandomProgram.h"
#include "Support.h"

#include "mega/Analysis/Certificate.h"
#include "mega/Analysis/StageAccess.h"
#include "mega/Transforms/ScheduleFile.h"

#include "mlir/IR/Builders.h"
#include "gtest/gtest.h"

#include <optional>

using namespace mega;
using namespace mega::test;

namespace {

mlir::OwningOpRef<mlir::ModuleOp> partitioned(Session &session, uint64_t seed,
                                              int stages) {
  auto module = session.parse(randomProgram(seed, stages));
  EXPECT_TRUE(module && session.run(*module,
                                    [](mlir::PassManager &pm) {
                                      pm.addPass(createPartitionPass());
                                    }))
      << "seed " << seed;
  return module;
}

/// Puts stage i of a program into phase `phase[i]`.
void place(mlir::Operation *program, const std::vector<int> &phase,
           int phases) {
  auto stages = llvm::to_vector(program->getRegion(0).getOps<StageOp>());
  mlir::Block *block = &program->getRegion(0).front();
  mlir::OpBuilder builder(program->getContext());
  for (int index = 0; index < phases; ++index) {
    builder.setInsertionPointToEnd(block);
    if (index)
      GridBarrierOp::create(builder, program->getLoc(),
                            builder.getStrArrayAttr({}));
    auto op = PhaseOp::create(builder, program->getLoc(), index);
    mlir::Block *body = builder.createBlock(&op.getBody());
    for (auto [number, stage] : llvm::enumerate(stages))
      if (phase[number] == index)
        stage->moveBefore(body, body->end());
  }
}

/// True if dependent stages keep their order: swapping them would be another
/// program, which the oracle does not see.
bool keepsOrder(const std::vector<int> &phase,
                const std::vector<std::pair<int, int>> &edges) {
  for (auto [from, to] : edges)
    if (phase[from] > phase[to])
      return false;
  return true;
}

/// Pairs of stages that touch one place, by listing elements.
std::vector<std::pair<int, int>> dependentPairs(mlir::Operation *program) {
  std::vector<std::pair<int, int>> edges;
  auto stages = llvm::to_vector(program->getRegion(0).getOps<StageOp>());
  for (size_t to = 0; to < stages.size(); ++to)
    for (size_t from = 0; from < to; ++from)
      for (const StageAccess &a : collectAccesses(stages[from]))
        for (const StageAccess &b : collectAccesses(stages[to]))
          if (a.resource == b.resource && (a.isWrite || b.isWrite))
            edges.push_back({int(from), int(to)});
  return edges;
}

/// The fewest barriers with which `isSafe(phases of stages)` holds.
template <typename IsSafe>
int fewestBarriers(int stages, const std::vector<std::pair<int, int>> &edges,
                   IsSafe isSafe) {
  for (int phases = 1; phases <= stages; ++phases) {
    std::vector<int> phase(stages, 0);
    for (;;) {
      if (keepsOrder(phase, edges) && isSafe(phase, phases))
        return phases - 1;
      size_t at = 0;
      while (at < phase.size() && ++phase[at] == phases)
        phase[at++] = 0;
      if (at == phase.size())
        break;
    }
  }
  return -1;
}

int countBarriers(mlir::ModuleOp module) {
  int barriers = 0;
  module.walk([&](GridBarrierOp) { ++barriers; });
  return barriers;
}

/// The length of the chain that the scheduler gives as a proof.
int chainLength(mlir::ModuleOp module) {
  auto chain = containerOf(module)->getAttrOfType<mlir::ArrayAttr>(
      kBarrierChainAttrName);
  return chain ? int(chain.size()) : -1;
}

TEST(Optimality, NoScheduleHasFewerBarriers) {
  Session session;
  for (uint64_t seed = 0; seed < 60; ++seed) {
    int stages = 3 + int(seed % 2);
    auto module = partitioned(session, seed, stages);
    auto edges = dependentPairs(containerOf(*module));
    int fewest = fewestBarriers(
        stages, edges, [&](const std::vector<int> &phase, int phases) {
          mlir::OwningOpRef<mlir::ModuleOp> copy = module->clone();
          place(containerOf(*copy), phase, phases);
          return whyUnsafe(containerOf(*copy)).empty();
        });
    ASSERT_TRUE(session.run(*module, [](mlir::PassManager &pm) {
      pm.addPass(createSchedulePhasesPass());
    }));
    EXPECT_EQ(countBarriers(*module), fewest) << "seed " << seed;
    EXPECT_EQ(chainLength(*module), fewest) << "seed " << seed;
  }
}

/// With counters: a phase assignment is legal if a schedule file that has it,
/// with counters wherever they can stand, is accepted.
TEST(Optimality, NoScheduleWithCountersHasFewerBarriers) {
  Session session;
  int shorter = 0;
  for (uint64_t seed = 0; seed < 40; ++seed) {
    int stages = 3;
    auto module = partitioned(session, seed, stages);
    auto edges = dependentPairs(containerOf(*module));
    std::string path = ::testing::TempDir() + "/schedule.json";
    int fewest = fewestBarriers(
        stages, edges, [&](const std::vector<int> &phase, int phases) {
          // Any subset of the dependent pairs may have counters.
          std::vector<std::pair<int, int>> pairs;
          for (auto edge : edges)
            if (phase[edge.first] == phase[edge.second] &&
                !llvm::is_contained(pairs, edge))
              pairs.push_back(edge);
          for (unsigned subset = 0; subset < 1u << pairs.size(); ++subset) {
            ScheduleFile file;
            file.block = "p";
            file.phases.resize(phases);
            for (auto [stage, index] : llvm::enumerate(phase))
              file.phases[index].push_back("s" + std::to_string(stage));
            if (llvm::any_of(file.phases,
                             [](auto &phase) { return phase.empty(); }))
              return false;
            for (auto [bit, pair] : llvm::enumerate(pairs))
              if (subset >> bit & 1)
                file.counters.emplace_back("s" + std::to_string(pair.first),
                                           "s" + std::to_string(pair.second));
            std::string text;
            llvm::raw_string_ostream(text) << toJson(file);
            std::FILE *out = std::fopen(path.c_str(), "w");
            std::fputs(text.c_str(), out);
            std::fclose(out);
            mlir::OwningOpRef<mlir::ModuleOp> copy = module->clone();
            ApplySchedulePassOptions options;
            options.file = path;
            if (session.run(*copy,
                            [&](mlir::PassManager &pm) {
                              pm.addPass(createApplySchedulePass(options));
                            }) &&
                whyUnsafe(containerOf(*copy)).empty())
              return true;
          }
          return false;
        });
    SchedulePhasesPassOptions options;
    options.sync = Synchronization::Counters;
    options.waitLimit = 1 << 20;
    int withBarriers = 0;
    {
      mlir::OwningOpRef<mlir::ModuleOp> copy = module->clone();
      ASSERT_TRUE(session.run(*copy, [](mlir::PassManager &pm) {
        pm.addPass(createSchedulePhasesPass());
      }));
      withBarriers = countBarriers(*copy);
    }
    ASSERT_TRUE(session.run(*module, [&](mlir::PassManager &pm) {
      pm.addPass(createSchedulePhasesPass(options));
    }));
    EXPECT_EQ(countBarriers(*module), fewest) << "seed " << seed;
    EXPECT_EQ(chainLength(*module), fewest) << "seed " << seed;
    shorter += countBarriers(*module) < withBarriers;
  }
  EXPECT_GT(shorter, 10);
}

} // namespace
