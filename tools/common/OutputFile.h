// SPDX-License-Identifier: Apache-2.0
/// \file
/// What tools write. It needs nothing but LLVM's support library, for the
/// static builds.

#ifndef MEGALITH_TOOLS_OUTPUTFILE_H
#define MEGALITH_TOOLS_OUTPUTFILE_H

#include "llvm/ADT/StringRef.h"
#include "llvm/ADT/Twine.h"
#include "llvm/Support/Error.h"

#include <system_error>

namespace mega {

/// "WHAT: CAUSE", for a file that could not be read, made or moved.
llvm::Error fileError(std::error_code cause, const llvm::Twine &what);

/// Writes `text` to `path`, or to standard output for "-". A file appears whole
/// or not at all, and its folder must be there. A link keeps its place, and
/// what it names is written; a device or a pipe is written, not replaced.
llvm::Error writeFile(llvm::StringRef path, llvm::StringRef text);

/// From here on, standard output that cannot be written, as on a full disk, is
/// an error of `tool` with exit code 1, whoever wrote to it. For main()'s first
/// line.
void checkStandardOutput(const char *tool);

} // namespace mega

#endif // MEGALITH_TOOLS_OUTPUTFILE_H
