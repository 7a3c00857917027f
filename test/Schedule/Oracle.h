// SPDX-License-Identifier: Apache-2.0
/// \file
/// Whether a schedule is safe, by listing everything that happens: each tile,
/// and the prologue on two CTAs, is an event; events that touch one place must
/// be ordered whichever CTA runs which tile. It knows nothing of the checker,
/// and uses no relation between tiles, only what single tiles touch.

#ifndef MEGA_TEST_SCHEDULE_ORACLE_H
#define MEGA_TEST_SCHEDULE_ORACLE_H

#include "mega/IR/Mega.h"

#include <string>

namespace mega::test {

/// Why `container`, a program or kernel with phases, is unsafe; empty if it is
/// safe.
std::string whyUnsafe(mlir::Operation *container);

} // namespace mega::test

#endif // MEGA_TEST_SCHEDULE_ORACLE_H
