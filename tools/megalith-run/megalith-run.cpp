// SPDX-License-Identifier: Apache-2.0
/// \file
/// Runs a block on the reference interpreter, on a GPU or on the simulator, and
/// compares with the reference.

#include "Options.h"
#include "Session.h"

#include "../common/OutputFile.h"

#include "llvm/Support/raw_ostream.h"

/// Prints an error the way compilers do; the exit code.
static int report(llvm::Error error) {
  llvm::errs() << "megalith-run: error: " << llvm::toString(std::move(error))
               << "\n";
  return 1;
}

int main(int argc, char **argv) {
  mega::checkStandardOutput("megalith-run");
  auto options = mega::run::parseOptions(argc, argv);
  if (!options)
    return report(options.takeError());
  auto passed = mega::run::runSession(*options);
  if (!passed)
    return report(passed.takeError());
  return *passed ? 0 : 1;
}
