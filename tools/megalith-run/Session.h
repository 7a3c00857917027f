// SPDX-License-Identifier: Apache-2.0
/// \file
/// Runs every (context, seed) pair of the command line and reports.

#ifndef MEGA_TOOLS_RUN_SESSION_H
#define MEGA_TOOLS_RUN_SESSION_H

#include "Options.h"

namespace mega::run {

/// True if every check passed; an error if something could not be run.
llvm::Expected<bool> runSession(const Options &options);

} // namespace mega::run

#endif // MEGA_TOOLS_RUN_SESSION_H
