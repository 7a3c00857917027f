// SPDX-License-Identifier: Apache-2.0
/// \file
/// Tables of an exploration.

#ifndef MEGALITH_TOOLS_EXPLORE_REPORT_H
#define MEGALITH_TOOLS_EXPLORE_REPORT_H

#include "Candidate.h"

#include "llvm/Support/raw_ostream.h"

namespace mega::explore {

/// What there is to choose from.
void printKnobs(llvm::raw_ostream &os);

/// One line a candidate of `shown`; those of `front` are marked '+', `best`
/// '*'.
void printTable(llvm::ArrayRef<Candidate> candidates,
                llvm::ArrayRef<size_t> shown, llvm::ArrayRef<size_t> front,
                std::optional<size_t> best, llvm::raw_ostream &os);

/// How many there were, how many are equal, how many failed and why, and how
/// far off predictions are.
void printSummary(llvm::ArrayRef<Candidate> candidates, size_t distinctCount,
                  llvm::raw_ostream &os);

} // namespace mega::explore

#endif // MEGALITH_TOOLS_EXPLORE_REPORT_H
