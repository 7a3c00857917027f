// SPDX-License-Identifier: Apache-2.0
/// \file
/// Counts calls of the CUDA driver while it lives: all of the process if CUPTI
/// can be opened, else those that the runtime makes, by its own table.

#ifndef MEGA_TOOLS_AUDIT_CALLLOG_H
#define MEGA_TOOLS_AUDIT_CALLLOG_H

#include <map>
#include <memory>
#include <string>

namespace mega::audit {

class CallLog {
public:
  /// Puts a counter before each of the runtime's calls of the driver. Call
  /// before anything else opens the driver; throws megalith::Error without one.
  static void installTable();

  /// `cupti` is the library to open; empty for $MEGALITH_CUPTI, else libcupti
  /// of the loader's path or of $CUDA_HOME or /usr/local/cuda.
  explicit CallLog(const std::string &cupti);
  ~CallLog();
  CallLog(const CallLog &) = delete;
  CallLog &operator=(const CallLog &) = delete;

  /// "cupti", or "the runtime's calls; " and why not CUPTI.
  const std::string &source() const;

  /// Counts from nothing again.
  void clear();
  /// Calls by name, as in cuda.h, without version suffixes.
  std::map<std::string, long> counts() const;

private:
  struct Impl;
  std::unique_ptr<Impl> impl;
};

/// What the calls amount to.
struct CallSummary {
  long launches = 0;
  /// Copies, sets, allocations, waits and module loads, by name.
  std::map<std::string, long> others;
};
CallSummary summarize(const std::map<std::string, long> &counts);

} // namespace mega::audit

#endif // MEGA_TOOLS_AUDIT_CALLLOG_H
