// SPDX-License-Identifier: Apache-2.0
/// \file
/// Names and values of a phase's arguments.

#include "PhaseArguments.h"
#include "Names.h"

#include "llvm/ADT/STLExtras.h"

using namespace mega;

std::string PhaseArguments::add(llvm::StringRef what, int64_t value) {
  for (const Argument &argument : arguments)
    if (argument.value == value && argument.what == what)
      return "a." + argument.field;
  // Layers differ in what stands before the last dot, and repeated names carry
  // a number after '#'.
  llvm::StringRef stem = what.split('#').first;
  if (stem.ends_with(".weight"))
    stem = stem.drop_back(7);
  std::string field = toIdentifier(
      stem.rsplit('.').second.empty() ? stem : stem.rsplit('.').second);
  if (unsigned count = counts[field]++)
    field += "_" + std::to_string(count);
  arguments.push_back({field, value, what.str()});
  return "a." + field;
}
