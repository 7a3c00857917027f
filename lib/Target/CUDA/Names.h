// SPDX-License-Identifier: Apache-2.0
/// \file
/// C names for things that have names in the IR.

#ifndef MEGA_LIB_TARGET_CUDA_NAMES_H
#define MEGA_LIB_TARGET_CUDA_NAMES_H

#include "mlir/IR/Location.h"
#include "llvm/ADT/StringRef.h"

#include <string>

namespace mega {

/// `name` with every character that C does not allow turned into '_', runs
/// collapsed.
std::string toIdentifier(llvm::StringRef name);

/// "file.mlir:12" for a location that has a line, "" otherwise. Only the last
/// path component is kept, so that text does not depend on where it was made.
std::string describeLocation(mlir::Location location);

/// `text` on one line of a `//` comment: no line breaks, no backslashes.
std::string toComment(llvm::StringRef text);

/// A C literal that reads back as exactly `value`.
std::string floatLiteral(float value);

} // namespace mega

#endif // MEGA_LIB_TARGET_CUDA_NAMES_H
