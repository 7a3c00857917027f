// SPDX-License-Identifier: Apache-2.0
/// \file
/// Looks for the depth of the text before it is parsed.

#include "mega/Support/Json.h"

#include "llvm/ADT/StringExtras.h"

using namespace mega;
using llvm::StringRef;

/// Where the level behind kMaxJsonDepth begins, or npos. The text may be
/// anything: what is no JSON is for the parser to say.
static size_t findTooDeep(StringRef text) {
  int depth = 0;
  bool quoted = false;
  for (size_t at = 0; at < text.size(); ++at) {
    char c = text[at];
    if (quoted) {
      if (c == '\\')
        ++at;
      quoted = c != '"';
    } else if (c == '"') {
      quoted = true;
    } else if (c == '[' || c == '{') {
      if (++depth > kMaxJsonDepth)
        return at;
    } else if (c == ']' || c == '}') {
      --depth;
    }
  }
  return StringRef::npos;
}

/// LLVM's error, "[LINE:COLUMN, byte=N]: Message", as compilers put it. The
/// parts cannot be asked for.
static std::string asLocated(llvm::Error error) {
  std::string text = llvm::toString(std::move(error));
  StringRef rest = text;
  if (!rest.consume_front("["))
    return " " + text;
  auto [place, message] = rest.split("]: ");
  std::string lower = message.str();
  if (!lower.empty())
    lower[0] = llvm::toLower(lower[0]);
  return (place.split(',').first + ": " + lower).str();
}

llvm::Expected<llvm::json::Value> mega::parseJson(StringRef text,
                                                  StringRef file) {
  size_t deep = findTooDeep(text);
  if (deep != StringRef::npos) {
    StringRef before = text.take_front(deep);
    size_t column = deep - before.rfind('\n');
    return llvm::createStringError(
        file + ":" + llvm::Twine(before.count('\n') + 1) + ":" +
        llvm::Twine(column) + ": JSON is nested deeper than " +
        llvm::Twine(kMaxJsonDepth) + " levels, expected at most that");
  }
  llvm::Expected<llvm::json::Value> value = llvm::json::parse(text);
  if (!value)
    return llvm::createStringError(file + ":" + asLocated(value.takeError()));
  return value;
}
