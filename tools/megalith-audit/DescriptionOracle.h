// SPDX-License-Identifier: Apache-2.0
/// \file
/// The reference interpreter as an audit's oracle.

#ifndef MEGA_TOOLS_AUDIT_DESCRIPTIONORACLE_H
#define MEGA_TOOLS_AUDIT_DESCRIPTIONORACLE_H

#include "../megalith-run/Executor.h"
#include "core/Subject.h"

namespace mega::audit {

/// With the relaxations that the description permits, as the kernel has them.
/// `description` and `weights` must outlive it.
llvm::Expected<std::unique_ptr<Oracle>>
makeOracle(const run::Description &description, const TensorMap &weights,
           unsigned threads);

} // namespace mega::audit

#endif // MEGA_TOOLS_AUDIT_DESCRIPTIONORACLE_H
