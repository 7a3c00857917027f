// SPDX-License-Identifier: Apache-2.0
/// \file
/// Elementwise regions as C expressions.

#ifndef MEGA_LIB_TARGET_CUDA_SCALARREGION_H
#define MEGA_LIB_TARGET_CUDA_SCALARREGION_H

#include "mega/IR/Mega.h"

#include <string>

namespace mega {

/// A lambda of f32 arguments that computes the region, captured by nothing:
/// "[](float a0, float a1) { ... return v3; }", on several lines with `indent`.
std::string emitScalarLambda(mlir::Region &region, llvm::StringRef indent);

} // namespace mega

#endif // MEGA_LIB_TARGET_CUDA_SCALARREGION_H
