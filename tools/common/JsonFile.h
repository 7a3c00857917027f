// SPDX-License-Identifier: Apache-2.0
/// \file
/// Files of text and JSON, read whole.

#ifndef MEGALITH_TOOLS_JSONFILE_H
#define MEGALITH_TOOLS_JSONFILE_H

#include "OutputFile.h"

#include "llvm/Support/Error.h"
#include "llvm/Support/JSON.h"

#include <string>

namespace mega {

/// The text of `path`; errors call it `what`, such as "machine file ".
llvm::Expected<std::string> readText(llvm::StringRef path,
                                     llvm::StringRef what = "");

/// The JSON value in `path`.
llvm::Expected<llvm::json::Value> readJson(llvm::StringRef path,
                                           llvm::StringRef what = "");

/// The JSON object in `path`, whose key 'format' is `format`; `expected` says
/// what such a file is.
llvm::Expected<llvm::json::Object> readJsonObject(llvm::StringRef path,
                                                  llvm::StringRef format,
                                                  llvm::StringRef expected,
                                                  llvm::StringRef what = "");

} // namespace mega

#endif // MEGALITH_TOOLS_JSONFILE_H
