// SPDX-License-Identifier: Apache-2.0
/// \file
/// JSON from files that anybody may have written.

#ifndef MEGA_SUPPORT_JSON_H
#define MEGA_SUPPORT_JSON_H

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"
#include "llvm/Support/JSON.h"

namespace mega {

/// How deep arrays and objects may be nested in each other; the files that
/// Megalith writes have less than 10 levels.
inline constexpr int kMaxJsonDepth = 64;

/// The value in `text`, the contents of `file`; errors start with
/// "FILE:LINE:COLUMN: ". LLVM's parser calls itself for each level, so that
/// text of many levels would end the program: text of more than kMaxJsonDepth
/// is refused unparsed.
llvm::Expected<llvm::json::Value> parseJson(llvm::StringRef text,
                                            llvm::StringRef file);

} // namespace mega

#endif // MEGA_SUPPORT_JSON_H
