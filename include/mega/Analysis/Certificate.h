// SPDX-License-Identifier: Apache-2.0
/// \file
/// The proof that a schedule has the fewest barriers.

#ifndef MEGA_ANALYSIS_CERTIFICATE_H
#define MEGA_ANALYSIS_CERTIFICATE_H

#include "mega/IR/Mega.h"

namespace mega {

/// Attribute of a program or kernel whose schedule the compiler chose: one
/// dependence for each barrier, which needs it, every one after the one before.
constexpr llvm::StringLiteral kBarrierChainAttrName = "mega.barrier_chain";

} // namespace mega

#endif // MEGA_ANALYSIS_CERTIFICATE_H
