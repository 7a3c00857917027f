// SPDX-License-Identifier: Apache-2.0
/// \file
/// Checks that several verifiers share: symbols resolve to the right kind of
/// declaration, and shapes agree. Every message names the symbol, gives the
/// value found and the value wanted.

#ifndef MEGA_LIB_IR_SYMBOLCHECKS_H
#define MEGA_LIB_IR_SYMBOLCHECKS_H

#include "mega/IR/Mega.h"

#include "mlir/IR/AffineMap.h"
#include "mlir/IR/OpDefinition.h"

namespace mega {

/// The type of weight `name` as seen from `op`; an error if there is none.
mlir::FailureOr<mlir::Type> lookupWeight(mlir::Operation *op,
                                         mlir::SymbolTableCollection &symbols,
                                         mlir::FlatSymbolRefAttr name);

/// The same, which must be a quantised weight.
mlir::FailureOr<QuantType>
lookupQuantWeight(mlir::Operation *op, mlir::SymbolTableCollection &symbols,
                  mlir::FlatSymbolRefAttr name);

/// The same, which must be a plain tensor of rank `rank`.
mlir::FailureOr<mlir::RankedTensorType>
lookupDenseWeight(mlir::Operation *op, mlir::SymbolTableCollection &symbols,
                  mlir::FlatSymbolRefAttr name, int64_t rank);

/// The tensor type of state `name` as seen from `op`.
mlir::FailureOr<mlir::RankedTensorType>
lookupState(mlir::Operation *op, mlir::SymbolTableCollection &symbols,
            mlir::FlatSymbolRefAttr name);

/// Fails unless `region` is straight-line scalar f32 code over `arity`
/// arguments that ends in mega.yield.
mlir::LogicalResult verifyScalarRegion(mlir::Operation *owner,
                                       mlir::Region &region, unsigned arity);

/// Fails unless `found == wanted`: "@w has 5 columns, expected 4".
mlir::LogicalResult expectSize(mlir::Operation *op, llvm::Twine subject,
                               llvm::StringRef unit, int64_t found,
                               int64_t wanted);

inline mlir::RankedTensorType tensorTypeOf(mlir::Value value) {
  return llvm::cast<mlir::RankedTensorType>(value.getType());
}

} // namespace mega

#endif // MEGA_LIB_IR_SYMBOLCHECKS_H
