// SPDX-License-Identifier: Apache-2.0
/// \file
/// An explanation as text, JSON, a web page or a trace.

#ifndef MEGALITH_TOOLS_EXPLAIN_FORMATS_H
#define MEGALITH_TOOLS_EXPLAIN_FORMATS_H

#include "Explanation.h"

#include "llvm/Support/JSON.h"
#include "llvm/Support/raw_ostream.h"

namespace mega::explain {

/// For people.
void printText(const Explanation &explanation, llvm::raw_ostream &os);

/// For programs: docs/explaining.md has the keys, which stay.
llvm::json::Object jsonOf(const Explanation &explanation);

/// One self-contained page: what jsonOf gives, and a chart of SMs over time.
void printHtml(const Explanation &explanation, llvm::raw_ostream &os);

/// Trace events, for Perfetto and chrome://tracing: one track an SM, predicted
/// and, where there are measurements, measured.
llvm::json::Object traceOf(const Explanation &explanation);

/// When each CTA works in each phase by the prediction: spans[phase][cta], in
/// microseconds.
std::vector<std::vector<std::pair<double, double>>>
predictedSpans(const Explanation &explanation);

} // namespace mega::explain

#endif // MEGALITH_TOOLS_EXPLAIN_FORMATS_H
