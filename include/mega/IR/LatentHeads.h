// SPDX-License-Identifier: Apache-2.0
/// \file
/// How latent attention groups its heads.

#ifndef MEGA_IR_LATENTHEADS_H
#define MEGA_IR_LATENTHEADS_H

#include <cstdint>

namespace mega {

/// Heads that attend to a chunk of a latent cache together: the rows of an mma.
constexpr int64_t kLatentHeads = 16;

} // namespace mega

#endif // MEGA_IR_LATENTHEADS_H
