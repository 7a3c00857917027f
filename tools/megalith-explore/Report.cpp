// SPDX-License-Identifier: Apache-2.0
/// \file
/// Prints candidates.

#include "Report.h"
#include "Measuring.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Format.h"

#include <map>

using namespace mega;
using namespace mega::explore;
using llvm::format;

void mega::explore::printKnobs(llvm::raw_ostream &os) {
  os << "dimension  option          values (the first is the default)\n";
  for (const Knob &knob : knobs())
    os << format("%-9s  %-14s  ", knob.dimension.data(), knob.name.data())
       << llvm::join(knob.values, ", ") << "  " << knob.what << "\n";
}

void mega::explore::printTable(llvm::ArrayRef<Candidate> candidates,
                               llvm::ArrayRef<size_t> shown,
                               llvm::ArrayRef<size_t> front,
                               std::optional<size_t> best,
                               llvm::raw_ostream &os) {
  bool measured = llvm::any_of(
      candidates, [](const Candidate &c) { return c.measuredUs.has_value(); });
  os << "     id  barriers  predicted us" << (measured ? "  measured us" : "")
     << "  workspace KiB  shared B  registers  spilled B  options\n";
  for (size_t index : shown) {
    const Candidate &candidate = candidates[index];
    const Compiled &compiled = *candidate.compiled;
    os << format("%c%c %4lld  %8lld  %12.1f", best == index ? '*' : ' ',
                 llvm::is_contained(front, index) ? '+' : ' ',
                 (long long)candidate.id, (long long)compiled.barriers,
                 compiled.predictedUs);
    if (measured && candidate.measuredUs)
      os << format("  %11.1f", *candidate.measuredUs);
    else if (measured)
      os << "            -";
    os << format("  %13.0f  %8lld", compiled.workspaceBytes / 1024.0,
                 (long long)compiled.sharedBytes);
    if (candidate.assembled)
      os << format("  %9lld  %9lld", (long long)candidate.assembled->registers,
                   (long long)candidate.assembled->spillBytes);
    else
      os << "          -          -";
    os << "  " << describe(candidate.options) << "\n";
  }
}

void mega::explore::printSummary(llvm::ArrayRef<Candidate> candidates,
                                 size_t distinctCount, llvm::raw_ostream &os) {
  size_t visited = 0, failed = 0;
  std::map<std::string, size_t> reasons;
  for (const Candidate &candidate : candidates) {
    visited += candidate.visited();
    if (!candidate.error.empty()) {
      ++failed;
      // Messages differ in names; the start tells the kind.
      ++reasons[llvm::StringRef(candidate.error).split('\n').first.str()];
    }
  }
  os << format("%zu of %zu combinations visited, %zu kernels differ", visited,
               candidates.size(), distinctCount);
  if (failed != 0)
    os << format(", %zu cannot be compiled", failed);
  os << "\n";
  for (const auto &[reason, count] : reasons)
    os << format("  %zu: ", count) << reason << "\n";
  if (Agreement agreement = agreementOf(candidates); agreement.count > 0)
    os << format("predictions of %zu measured ones: median error %.1f %%, rank "
                 "correlation %.2f\n",
                 agreement.count, 100 * agreement.medianError,
                 agreement.rankCorrelation);
}
