// SPDX-License-Identifier: Apache-2.0
/// \file
/// Measurements of megalith-bench (docs/measuring.md) for one block.

#ifndef MEGALITH_TOOLS_EXPLAIN_MEASURED_H
#define MEGALITH_TOOLS_EXPLAIN_MEASURED_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"

#include <optional>
#include <string>
#include <vector>

namespace mega::explain {

/// Means over CTAs.
struct MeasuredPhase {
  double workUs, waitUs, maxWorkUs;
};

struct Measurement {
  std::string file, device;
  int64_t context = 0;
  /// Of a step of the bundle without stamps, back to back; nothing if the file
  /// has no such bundle at that context.
  std::optional<double> tokenUs;
  std::vector<MeasuredPhase> phases;
  /// spans[phase][cta]: begin and end in microseconds. Clocks of SMs are not
  /// comparable, so each CTA's is shifted until its phases begin, in the
  /// median, when the others' do: all leave a barrier together.
  std::vector<std::vector<std::pair<double, double>>> spans;
};

/// The measurements in `path` of the bundle whose phases run `stages`, in
/// order; an error names what there is instead.
llvm::Expected<Measurement>
readMeasurement(llvm::StringRef path, llvm::StringRef block,
                llvm::ArrayRef<std::vector<std::string>> stages);

} // namespace mega::explain

#endif // MEGALITH_TOOLS_EXPLAIN_MEASURED_H
