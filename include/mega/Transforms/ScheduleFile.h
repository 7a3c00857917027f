// SPDX-License-Identifier: Apache-2.0
/// \file
/// Schedules as JSON: which stages share a phase, and where counters stand.
/// docs/schedules.md describes the format.

#ifndef MEGA_TRANSFORMS_SCHEDULEFILE_H
#define MEGA_TRANSFORMS_SCHEDULEFILE_H

#include "mega/IR/Mega.h"

#include "llvm/Support/Error.h"
#include "llvm/Support/JSON.h"

#include <string>
#include <vector>

namespace mega {

struct ScheduleFile {
  std::string block;
  /// Names of stages; a grid barrier stands between neighbours.
  std::vector<std::vector<std::string>> phases;
  /// Pairs of stages (from, to) of one phase that counters order.
  std::vector<std::pair<std::string, std::string>> counters;
};

/// Reads the text of `file`; errors name the file and the key.
llvm::Expected<ScheduleFile> parseScheduleFile(llvm::StringRef text,
                                               llvm::StringRef file);

/// The schedule that stands in `container`, a program or kernel with phases.
ScheduleFile extractSchedule(mlir::Operation *container);

llvm::json::Value toJson(const ScheduleFile &schedule);

} // namespace mega

#endif // MEGA_TRANSFORMS_SCHEDULEFILE_H
