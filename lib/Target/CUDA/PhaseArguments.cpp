// SPDX-License-Identifier: Apache-2.0
/// \file
/// Names and values of a phase's arguments.

#include "PhaseArguments.h"
#include "Names.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringSet.h"

using namespace mega;

std::string PhaseArguments::add(llvm::StringRef what, From from,
                                int64_t value) {
  for (const Argument &argument : arguments)
    if (argument.value == value && argument.from == from &&
        argument.what == what)
      return "a." + argument.field;
  // Layers differ in what stands before the last dot, and repeated names carry
  // a number after '#'.
  llvm::StringRef stem = what.split('#').first;
  if (stem.ends_with(".weight"))
    stem = stem.drop_back(7);
  std::string field = toIdentifier(
      stem.rsplit('.').second.empty() ? stem : stem.rsplit('.').second);
  // A trailing underscore keeps weights named like keywords apart from them,
  // and no identifier ends in one otherwise.
  static const llvm::StringSet<> taken = {
      "alignas",  "alignof",  "and",       "asm",      "auto",     "bool",
      "break",    "case",     "catch",     "char",     "class",    "const",
      "continue", "default",  "delete",    "do",       "double",   "else",
      "enum",     "explicit", "export",    "extern",   "false",    "float",
      "for",      "friend",   "goto",      "if",       "inline",   "int",
      "long",     "mutable",  "namespace", "new",      "not",      "operator",
      "or",       "private",  "protected", "public",   "register", "return",
      "short",    "signed",   "sizeof",    "static",   "struct",   "switch",
      "template", "this",     "throw",     "true",     "try",      "typedef",
      "typeid",   "typename", "union",     "unsigned", "using",    "virtual",
      "void",     "volatile", "while",     "xor"};
  if (taken.contains(field))
    field += "_";
  std::string stemField = field;
  for (unsigned number = 1; !fields.insert(field).second; ++number)
    field = stemField + "_" + std::to_string(number);
  arguments.push_back({field, from, value, what.str()});
  return "a." + field;
}
