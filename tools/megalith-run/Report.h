// SPDX-License-Identifier: Apache-2.0
/// \file
/// Tables on standard output, and the result file.

#ifndef MEGA_TOOLS_RUN_REPORT_H
#define MEGA_TOOLS_RUN_REPORT_H

#include "Case.h"

namespace mega::run {

/// Labels of a row.
struct CaseName {
  int64_t context;
  uint64_t seed;
};

/// Column titles of printRow.
void printHeader(bool checked);

/// One line for a whole case: times, and the worst of each comparison.
void printRow(const CaseName &name, const CaseOutput &output,
              const Verdict *verdict, llvm::StringRef outcome);

/// One line for each step, then one for each state.
void printDetails(const CaseOutput &output, const Verdict *verdict);

/// How far input noise moved the reference, step by step.
void printNoise(const Verdict &verdict);

/// Every router that chose otherwise, with the reference's gap.
void printRouting(const Verdict &verdict);

/// step<t>/hidden_out, step<t>/<probe> and state_out/<name>.
llvm::Error writeOutput(const std::string &path, const CaseOutput &output);

} // namespace mega::run

#endif // MEGA_TOOLS_RUN_REPORT_H
