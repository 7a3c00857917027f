// SPDX-License-Identifier: Apache-2.0
/// \file
/// An elementwise region as a list of instructions over f32 registers.

#ifndef MEGA_LIB_REFERENCE_SCALARPROGRAM_H
#define MEGA_LIB_REFERENCE_SCALARPROGRAM_H

#include "mega/IR/Mega.h"

namespace mega::reference {

/// A region compiled once and run on many elements.
class ScalarProgram {
public:
  /// Compiles a region that verifyScalarRegion accepted; a diagnostic at any
  /// op without a meaning here.
  static mlir::FailureOr<ScalarProgram> compile(mlir::Region &region);

  /// `out[i] = f(inputs[0][i], inputs[1][i], ...)` for i < count.
  void run(llvm::ArrayRef<const float *> inputs, int64_t count,
           float *out) const;

private:
  enum class Opcode {
    Constant,
    Add,
    Sub,
    Mul,
    Div,
    Neg,
    Maximum,
    Minimum,
    Exp,
    Log1p,
    Tanh,
    Sqrt,
    Rsqrt,
    Abs
  };
  /// Computes the next register from registers `a` and `b`.
  struct Instruction {
    Opcode opcode;
    unsigned a = 0, b = 0;
    float constant = 0.0f;
  };

  static mlir::FailureOr<Opcode> opcodeOf(mlir::Operation &op);
  static float apply(const Instruction &instruction, float a, float b);

  /// Registers [0, arguments) hold the elements; each instruction adds one.
  unsigned arguments = 0;
  unsigned result = 0;
  std::vector<Instruction> instructions;
};

} // namespace mega::reference

#endif // MEGA_LIB_REFERENCE_SCALARPROGRAM_H
