// SPDX-License-Identifier: Apache-2.0
/// \file
/// One run of several steps from one state, and what came of it.

#ifndef MEGA_TOOLS_RUN_CASE_H
#define MEGA_TOOLS_RUN_CASE_H

#include "Compare.h"
#include "Executor.h"
#include "Tensors.h"

namespace mega::run {

/// What a run starts from.
struct CaseInput {
  InitialState initial;
  std::vector<megalith::Tensor> hidden;
  int64_t steps = 1;
  bool feedOutput = false;
};

/// What a run left behind.
struct CaseOutput {
  /// One entry a step.
  std::vector<megalith::Tensor> hidden;
  std::vector<std::vector<Choice>> choices;
  std::vector<double> hostMicroseconds;
  /// After the last step, by state name.
  megalith::TensorMap states;
  /// Mean of the steps that were timed on the device; 0 without.
  StepTime stepTime;
};

/// Runs the steps on one executor. States are read back if `wantStates`.
llvm::Expected<CaseOutput> runCase(Executor &executor, const CaseInput &input,
                                   const megalith::Manifest &manifest,
                                   bool wantStates);

/// A copy whose first hidden vector is moved by about 0.1 % of its length.
CaseInput withNoise(const CaseInput &input);

/// The comparison of two runs.
struct Verdict {
  std::vector<Distance> hidden;
  /// One list a step.
  std::vector<std::vector<RoutingDifference>> routing;
  std::vector<std::pair<std::string, Distance>> states;

  bool sameRouting() const;
  /// The first step's first difference, or null.
  const RoutingDifference *firstDifference() const;
  Distance worstHidden() const;
  std::pair<std::string, Distance> worstState() const;
};

/// Compares step by step, and the final states.
Verdict compare(const CaseOutput &found, const CaseOutput &wanted);

} // namespace mega::run

#endif // MEGA_TOOLS_RUN_CASE_H
