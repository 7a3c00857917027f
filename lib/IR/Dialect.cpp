// SPDX-License-Identifier: Apache-2.0
/// \file
/// Registration of the mega dialect.

#include "mega/IR/Mega.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"

using namespace mlir;
using namespace mega;

#include "mega/IR/MegaDialect.cpp.inc"
#include "mega/IR/MegaEnums.cpp.inc"
#include "mega/IR/MegaInterfaces.cpp.inc"

void MegaDialect::initialize() {
  registerTypes();
  registerAttributes();
  addOperations<
#define GET_OP_LIST
#include "mega/IR/Mega.cpp.inc"
      >();
}
