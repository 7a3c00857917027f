// SPDX-License-Identifier: Apache-2.0
/// \file
/// The Presburger relation between two accesses is what listing their elements
/// gives, and the runs of an access are what its affine map gives.

#include "RandomProgram.h"
#include "Support.h"

#include "mega/Analysis/Dependence.h"

#include "mlir/IR/AffineMap.h"
#include "mlir/IR/Builders.h"
#include "gtest/gtest.h"

#include <set>

using namespace mega;
using namespace mega::test;

namespace {

/// Elements of a tile by folding the map for every symbol, without runs.
std::set<int64_t> elementsByMap(const TileAccess &access, int64_t tile) {
  mlir::Builder builder(access.map.getContext());
  std::set<int64_t> elements;
  int64_t count = 1;
  for (int64_t dim : access.shape)
    count *= dim;
  std::vector<int64_t> symbols(access.extents.size(), 0);
  for (;;) {
    llvm::SmallVector<mlir::Attribute> operands = {builder.getIndexAttr(tile)};
    for (int64_t symbol : symbols)
      operands.push_back(builder.getIndexAttr(symbol));
    llvm::SmallVector<mlir::Attribute> results;
    EXPECT_TRUE(mlir::succeeded(access.map.constantFold(operands, results)));
    int64_t number = 0;
    bool inside = true;
    for (auto [index, result] : llvm::enumerate(results)) {
      int64_t value = llvm::cast<mlir::IntegerAttr>(result).getInt();
      int64_t size = results.size() == 1 ? count : access.shape[index];
      inside &= value >= 0 && value < size;
      number = number * size + value;
    }
    if (inside)
      elements.insert(number);
    size_t at = 0;
    while (at < symbols.size() && ++symbols[at] == access.extents[at])
      symbols[at++] = 0;
    if (at == symbols.size())
      return elements;
  }
}

std::set<int64_t> elementsByRuns(const TileAccess &access, int64_t tile) {
  std::set<int64_t> elements;
  access.forEachRun(tile, [&](int64_t first, int64_t length) {
    for (int64_t element = first; element < first + length; ++element)
      elements.insert(element);
  });
  return elements;
}

TEST(Relations, RunsAreTheMapsElements) {
  Session session;
  for (uint64_t seed = 0; seed < 20; ++seed) {
    auto module = session.parse(randomProgram(seed, 4));
    ASSERT_TRUE(module && session.run(*module, [](mlir::PassManager &pm) {
      pm.addPass(createPartitionPass());
    }));
    module->walk([&](StageOp stage) {
      for (const TileAccess &access : collectTileAccesses(stage))
        for (int64_t tile = access.begin; tile < access.end; tile += 5)
          EXPECT_EQ(elementsByRuns(access, tile), elementsByMap(access, tile))
              << "seed " << seed << ", " << stage.getName().str();
    });
  }
}

TEST(Relations, DependentTilesAreThoseThatShareElements) {
  Session session;
  int pairs = 0;
  for (uint64_t seed = 100; seed < 120; ++seed) {
    auto module = session.parse(randomProgram(seed, 4));
    ASSERT_TRUE(module && session.run(*module, [](mlir::PassManager &pm) {
      pm.addPass(createPartitionPass());
    }));
    DependenceAnalysis analysis(containerOf(*module));
    for (const Dependence &edge : analysis.getDependences()) {
      if (edge.carried)
        continue;
      ++pairs;
      for (int64_t later = edge.later->begin; later < edge.later->end;
           later += 7) {
        std::set<int64_t> mine = elementsByMap(*edge.later, later);
        llvm::SmallVector<int64_t> wanted;
        for (int64_t earlier = edge.earlier->begin; earlier < edge.earlier->end;
             ++earlier) {
          std::set<int64_t> other = elementsByMap(*edge.earlier, earlier);
          bool shared = llvm::any_of(
              other, [&](int64_t element) { return mine.count(element); });
          if (shared)
            wanted.push_back(earlier);
        }
        EXPECT_EQ(edge.tilesBefore(later), wanted) << "seed " << seed;
      }
    }
  }
  EXPECT_GT(pairs, 20);
}

} // namespace
