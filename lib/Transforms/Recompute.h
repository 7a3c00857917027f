// SPDX-License-Identifier: Apache-2.0
/// \file
/// Computing a prologue value again where it is read, instead of reading what
/// another stage published.

#ifndef MEGA_LIB_TRANSFORMS_RECOMPUTE_H
#define MEGA_LIB_TRANSFORMS_RECOMPUTE_H

#include "mega/IR/Mega.h"

#include "mlir/IR/IRMapping.h"

namespace mega {

/// True if `load` can be replaced by what computes the value of `store`: a
/// prologue value of the same type.
bool canRecompute(StoreOp store, LoadOp load);

/// Does so. `mapping` goes from the values of the store's stage to those of the
/// load's, which earlier calls computed.
void recompute(StoreOp store, LoadOp load, mlir::IRMapping &mapping);

/// Removes a buffer, and what writes it, if nothing reads it and it is no
/// probe.
void dropIfUnread(AllocOp alloc);

} // namespace mega

#endif // MEGA_LIB_TRANSFORMS_RECOMPUTE_H
