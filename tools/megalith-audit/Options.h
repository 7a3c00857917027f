// SPDX-License-Identifier: Apache-2.0
/// \file
/// The command line of megalith-audit, checked.

#ifndef MEGA_TOOLS_AUDIT_OPTIONS_H
#define MEGA_TOOLS_AUDIT_OPTIONS_H

#include "../megalith-run/Options.h"
#include "core/Checks.h"

namespace mega::audit {

/// What to audit, and how.
struct AuditOptions {
  /// Bundle, description and weights, as megalith-run takes them.
  run::Options source;
  bool sim = false;
  SimChoices simChoices;
  Plan plan;
  /// Where JSON goes: empty for nowhere, "-" for standard output.
  std::string json;
};

/// Parses the command line; exits by itself for `--help` and unknown flags.
llvm::Expected<AuditOptions> parseOptions(int argc, char **argv);

} // namespace mega::audit

#endif // MEGA_TOOLS_AUDIT_OPTIONS_H
