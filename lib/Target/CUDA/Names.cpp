// SPDX-License-Identifier: Apache-2.0
/// \file
/// Identifiers, locations and literals in emitted text.

#include "Names.h"

#include "mlir/IR/BuiltinAttributes.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/raw_ostream.h"

#include <cmath>

using namespace mlir;

std::string mega::toIdentifier(StringRef name) {
  std::string result;
  for (char c : name) {
    bool legal = llvm::isAlnum(c);
    if (legal)
      result += c;
    else if (!result.empty() && result.back() != '_')
      result += '_';
  }
  while (!result.empty() && result.back() == '_')
    result.pop_back();
  if (result.empty() || llvm::isDigit(result.front()))
    result.insert(result.begin(), '_');
  return result;
}

std::string mega::describeLocation(Location location) {
  std::string text;
  location->walk([&](Location inner) {
    auto file = dyn_cast<FileLineColLoc>(inner);
    if (!file)
      return WalkResult::advance();
    text = (llvm::sys::path::filename(file.getFilename()) + ":" +
            llvm::Twine(file.getLine()))
               .str();
    return WalkResult::interrupt();
  });
  return text;
}

std::string mega::toComment(StringRef text) {
  std::string result = text.str();
  for (char &c : result)
    if (!llvm::isPrint(c) || c == '\\')
      c = '?';
  return result;
}

std::string mega::floatLiteral(float value) {
  if (std::isinf(value))
    return value > 0 ? "__int_as_float(0x7f800000)"
                     : "__int_as_float(0xff800000)";
  if (std::isnan(value))
    return "__int_as_float(0x7fffffff)";
  // Nine significant digits tell every float from its neighbours.
  std::string text;
  llvm::raw_string_ostream(text) << llvm::format("%.9g", value);
  if (text.find_first_of(".e") == std::string::npos)
    text += ".0";
  return text + "f";
}
