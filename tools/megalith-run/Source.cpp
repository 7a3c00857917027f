// SPDX-License-Identifier: Apache-2.0
/// \file
/// Where numbers come from.

#include "Options.h"

#include "llvm/Support/FormatVariadic.h"

using namespace llvm;
using namespace mega::run;

/// An error of the command line.
template <typename... Args>
static Error usage(const char *format, Args &&...args) {
  return createStringError(formatv(format, std::forward<Args>(args)...).str());
}

Expected<Source> mega::run::parseSource(StringRef flag, StringRef text) {
  Source source;
  source.balanced = flag == "weights" && text.consume_front("balanced:");
  if (source.balanced || text.consume_front("random:")) {
    uint64_t seed;
    if (text.getAsInteger(10, seed))
      return usage("--{0} has seed '{1}', expected a non-negative integer",
                   flag, text);
    source.seed = seed;
    return source;
  }
  if (text.empty())
    return usage("--{0} is empty, expected a file or random:SEED", flag);
  source.path = text.str();
  return source;
}
