// SPDX-License-Identifier: Apache-2.0
/// \file
/// Changes to a schedule that may make it unsafe.

#ifndef MEGA_TEST_SCHEDULE_MUTATE_H
#define MEGA_TEST_SCHEDULE_MUTATE_H

#include "mega/IR/Mega.h"

#include <random>

namespace mega::test {

enum class Mutation {
  DropBarrier,
  DropWait,
  DropSignal,
  ChangeTarget,
  ChangeMap,
  SwapStages,
  MoveStage,
  DropReset,
  AddReset,
  MoveReset,
  ShareBytes,
};
constexpr int kMutations = 11;

const char *describe(Mutation mutation);

/// Makes one such change somewhere in `container`; false if there is nothing to
/// change.
bool mutate(mlir::Operation *container, Mutation mutation,
            std::mt19937_64 &random);

} // namespace mega::test

#endif // MEGA_TEST_SCHEDULE_MUTATE_H
