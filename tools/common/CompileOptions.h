// SPDX-License-Identifier: Apache-2.0
/// \file
/// Everything about a compilation that changes the kernel and not its meaning:
/// what megalith-explore varies, and what an options file holds.

#ifndef MEGALITH_TOOLS_COMPILEOPTIONS_H
#define MEGALITH_TOOLS_COMPILEOPTIONS_H

#include "mega/IR/Mega.h"
#include "mega/Target/CUDA/EmitterOptions.h"
#include "mega/Transforms/Passes.h"

#include "llvm/Support/Error.h"
#include "llvm/Support/JSON.h"

#include <string>
#include <vector>

namespace mega {

struct CompileOptions {
  StageOptions stages;
  ScheduleOptions schedule;
  EmitterOptions emitter;
};

/// "SLOTSxUNITS", each 1 to 4: what UnitRing has parities for.
std::optional<RingShape> parseRingShape(llvm::StringRef text);

/// One choice: a name, values that are worth trying, and how it is read and
/// set.
struct Knob {
  llvm::StringLiteral name;
  llvm::StringLiteral
      dimension; ///< "fusion", "partition", "sync" or "emission"
  llvm::StringLiteral what;
  /// Values to explore, the default first.
  std::vector<std::string> values;
  std::string (*get)(const CompileOptions &);
  /// False if the text is no value of the knob.
  bool (*set)(CompileOptions &, llvm::StringRef);
  /// True if the knob changes nothing, given the others.
  bool (*idle)(const CompileOptions &);
};

/// All knobs, in the order in which tables show them.
llvm::ArrayRef<Knob> knobs();

/// Values of the knobs, by name, for a file or a table.
llvm::json::Object knobValues(const CompileOptions &options);

/// The options that the object says, over the defaults; an error names the key,
/// the value found and those that there are.
llvm::Expected<CompileOptions> parseKnobs(const llvm::json::Object &values,
                                          llvm::StringRef file);

/// An options file: {"format": "megalith-options", "version": 1, "options":
/// {}}.
llvm::json::Object optionsFile(const CompileOptions &options);
llvm::Expected<CompileOptions> readOptionsFile(llvm::StringRef path);

} // namespace mega

#endif // MEGALITH_TOOLS_COMPILEOPTIONS_H
