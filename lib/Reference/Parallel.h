// SPDX-License-Identifier: Apache-2.0
/// \file
/// Independent work items on a few threads.

#ifndef MEGA_LIB_REFERENCE_PARALLEL_H
#define MEGA_LIB_REFERENCE_PARALLEL_H

#include "llvm/ADT/STLFunctionalExtras.h"

#include <cstdint>

namespace mega::reference {

/// Calls `body(i)` once for every i < count, on at most `threads` threads, in
/// no particular order. Items must not depend on each other.
void parallelFor(int64_t count, unsigned threads,
                 llvm::function_ref<void(int64_t)> body);

} // namespace mega::reference

#endif // MEGA_LIB_REFERENCE_PARALLEL_H
