// SPDX-License-Identifier: Apache-2.0
/// \file
/// The exploration on disk: written after every few candidates, so that an
/// interrupted one goes on where it stopped.

#ifndef MEGALITH_TOOLS_EXPLORE_STATE_H
#define MEGALITH_TOOLS_EXPLORE_STATE_H

#include "Candidate.h"

namespace mega::explore {

/// What an exploration is of; results of another are of no use.
struct Subject {
  std::string block;     ///< path, for people
  std::string blockHash; ///< of its text
  std::string arch;
  std::string machineHash; ///< of the machine file
  int64_t context = 0;
};

/// Fills in what `path` knows of `candidates`; nothing if there is no such
/// file. An error if it is of another subject.
llvm::Error loadState(llvm::StringRef path, const Subject &subject,
                      std::vector<Candidate> &candidates);

/// Replaces the file whole.
llvm::Error saveState(llvm::StringRef path, const Subject &subject,
                      llvm::ArrayRef<Candidate> candidates);

/// Writes `value` to a file that appears whole or not at all.
llvm::Error writeJson(llvm::StringRef path, llvm::json::Value value);

} // namespace mega::explore

#endif // MEGALITH_TOOLS_EXPLORE_STATE_H
