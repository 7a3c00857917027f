// SPDX-License-Identifier: Apache-2.0
/// \file
/// Times of candidates, by megalith-bench here or elsewhere.

#ifndef MEGALITH_TOOLS_EXPLORE_MEASURING_H
#define MEGALITH_TOOLS_EXPLORE_MEASURING_H

#include "Candidate.h"

namespace mega::explore {

/// Runs megalith-bench, which lies beside this program, on the folder's
/// candidates; its JSON goes to `json`.
llvm::Error runBench(llvm::StringRef program, llvm::StringRef folder,
                     int64_t context, llvm::StringRef json);

/// Takes the times of a megalith-bench --candidates run at `context`. An error
/// if the file has none.
llvm::Error readTimes(llvm::StringRef path, int64_t context,
                      std::vector<Candidate> &candidates);

/// How well predictions foretell measurements.
struct Agreement {
  size_t count = 0;
  double medianError = 0;     ///< relative
  double rankCorrelation = 0; ///< Spearman's
};
Agreement agreementOf(llvm::ArrayRef<Candidate> candidates);

} // namespace mega::explore

#endif // MEGALITH_TOOLS_EXPLORE_MEASURING_H
