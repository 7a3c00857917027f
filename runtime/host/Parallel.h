// SPDX-License-Identifier: Apache-2.0

#ifndef MEGA_RUNTIME_HOST_PARALLEL_H
#define MEGA_RUNTIME_HOST_PARALLEL_H

#include <cstdint>
#include <functional>

namespace megalith {

/// Calls `body(begin, end)` for disjoint ranges of at most `grain` that cover
/// [0, count), on up to `threads` threads (0: one a core). Returns when all
/// are done; the first exception thrown is rethrown, and ranges not started by
/// then are skipped. `body` runs concurrently with itself.
void parallelFor(uint64_t count, uint64_t grain, unsigned threads,
                 const std::function<void(uint64_t, uint64_t)> &body);

} // namespace megalith

#endif
