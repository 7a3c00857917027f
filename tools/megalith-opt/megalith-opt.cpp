// SPDX-License-Identifier: Apache-2.0
/// \file
/// Developer driver: mega, what it computes with, and the passes. It registers
/// nothing else on purpose, so that leakage is a parse error.

#include "mega/IR/Mega.h"
#include "mega/Transforms/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Tools/mlir-opt/MlirOptMain.h"
#include "mlir/Transforms/Passes.h"

int main(int argc, char **argv) {
  mlir::DialectRegistry registry;
  registry.insert<mega::MegaDialect, mlir::arith::ArithDialect,
                  mlir::math::MathDialect>();
  mlir::registerTransformsPasses();
  mega::registerMegaPasses();
  mega::registerPipelines();
  return mlir::asMainReturnCode(
      mlir::MlirOptMain(argc, argv, "Megalith optimizer driver\n", registry));
}
