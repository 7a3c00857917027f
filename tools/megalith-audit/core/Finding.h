// SPDX-License-Identifier: Apache-2.0
/// \file
/// What an audit found, as a table and as JSON.

#ifndef MEGA_TOOLS_AUDIT_FINDING_H
#define MEGA_TOOLS_AUDIT_FINDING_H

#include <string>
#include <vector>

namespace mega::audit {

/// How a check ended.
enum class Outcome {
  Pass,
  Fail,
  Partial, ///< what was looked at is good, but not all could be looked at
  Skipped, ///< nothing could be looked at
};

/// "pass", "FAIL", "partial", "skipped".
const char *outcomeName(Outcome outcome);

/// One row of the table.
struct Finding {
  std::string check;
  Outcome outcome = Outcome::Pass;
  /// Figures, or what is wrong, or why it was not looked at.
  std::string detail;
};

/// A whole audit.
struct Audit {
  std::string bundle;
  std::string block;
  std::string subject; ///< who ran it
  std::vector<Finding> findings;

  /// No check failed.
  bool passed() const;
  /// "PASS", "PASS, 2 checks partial, 1 skipped" or "FAIL, ...".
  std::string verdict() const;
};

/// The table and the verdict; ends with a newline.
std::string tableOf(const Audit &audit);
/// The same as a JSON object; ends with a newline.
std::string jsonOf(const Audit &audit);

} // namespace mega::audit

#endif // MEGA_TOOLS_AUDIT_FINDING_H
