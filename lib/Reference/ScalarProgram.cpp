// SPDX-License-Identifier: Apache-2.0
/// \file
/// Compiling and running elementwise regions.

#include "ScalarProgram.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/TypeSwitch.h"

#include <cmath>

using namespace mlir;
using namespace mega;
using namespace mega::reference;

FailureOr<ScalarProgram::Opcode> ScalarProgram::opcodeOf(Operation &op) {
  return llvm::TypeSwitch<Operation *, FailureOr<Opcode>>(&op)
      .Case([](arith::ConstantOp) { return Opcode::Constant; })
      .Case([](arith::AddFOp) { return Opcode::Add; })
      .Case([](arith::SubFOp) { return Opcode::Sub; })
      .Case([](arith::MulFOp) { return Opcode::Mul; })
      .Case([](arith::DivFOp) { return Opcode::Div; })
      .Case([](arith::NegFOp) { return Opcode::Neg; })
      .Case([](arith::MaximumFOp) { return Opcode::Maximum; })
      .Case([](arith::MinimumFOp) { return Opcode::Minimum; })
      .Case([](math::ExpOp) { return Opcode::Exp; })
      .Case([](math::Log1pOp) { return Opcode::Log1p; })
      .Case([](math::TanhOp) { return Opcode::Tanh; })
      .Case([](math::SqrtOp) { return Opcode::Sqrt; })
      .Case([](math::RsqrtOp) { return Opcode::Rsqrt; })
      .Case([](math::AbsFOp) { return Opcode::Abs; })
      .Default([](Operation *other) -> FailureOr<Opcode> {
        return other->emitOpError("has no reference meaning in an "
                                  "elementwise region");
      });
}

FailureOr<ScalarProgram> ScalarProgram::compile(Region &region) {
  ScalarProgram program;
  program.arguments = region.getNumArguments();
  llvm::DenseMap<Value, unsigned> registers;
  for (BlockArgument argument : region.getArguments())
    registers[argument] = argument.getArgNumber();
  for (Operation &op : region.front()) {
    if (auto yield = dyn_cast<YieldOp>(op)) {
      program.result = registers.lookup(yield.getValue());
      continue;
    }
    FailureOr<Opcode> opcode = opcodeOf(op);
    if (failed(opcode))
      return failure();
    Instruction instruction{*opcode};
    if (op.getNumOperands() > 0)
      instruction.a = registers.lookup(op.getOperand(0));
    if (op.getNumOperands() > 1)
      instruction.b = registers.lookup(op.getOperand(1));
    if (auto constant = dyn_cast<arith::ConstantOp>(op))
      instruction.constant =
          cast<FloatAttr>(constant.getValue()).getValue().convertToFloat();
    registers[op.getResult(0)] =
        program.arguments + program.instructions.size();
    program.instructions.push_back(instruction);
  }
  return program;
}

/// NaN if either is; +0 is above -0.
static float maximum(float a, float b) {
  if (std::isnan(a) || std::isnan(b))
    return a + b;
  if (a == b)
    return std::signbit(a) ? b : a;
  return a > b ? a : b;
}

float ScalarProgram::apply(const Instruction &instruction, float a, float b) {
  // Transcendental functions go through f64, so that their f32 results do not
  // depend on which variant of the C library runs.
  double wide = a;
  switch (instruction.opcode) {
  case Opcode::Constant:
    return instruction.constant;
  case Opcode::Add:
    return a + b;
  case Opcode::Sub:
    return a - b;
  case Opcode::Mul:
    return a * b;
  case Opcode::Div:
    return a / b;
  case Opcode::Neg:
    return -a;
  case Opcode::Maximum:
    return maximum(a, b);
  case Opcode::Minimum:
    return -maximum(-a, -b);
  case Opcode::Exp:
    return static_cast<float>(std::exp(wide));
  case Opcode::Log1p:
    return static_cast<float>(std::log1p(wide));
  case Opcode::Tanh:
    return static_cast<float>(std::tanh(wide));
  case Opcode::Sqrt:
    return std::sqrt(a);
  case Opcode::Rsqrt:
    return static_cast<float>(1.0 / std::sqrt(wide));
  case Opcode::Abs:
    return std::fabs(a);
  }
  llvm_unreachable("unknown opcode");
}

void ScalarProgram::run(ArrayRef<const float *> inputs, int64_t count,
                        float *out) const {
  std::vector<float> registers(arguments + instructions.size());
  for (int64_t i = 0; i < count; ++i) {
    for (unsigned argument = 0; argument < arguments; ++argument)
      registers[argument] = inputs[argument][i];
    for (auto [index, instruction] : llvm::enumerate(instructions))
      registers[arguments + index] = apply(
          instruction, registers[instruction.a], registers[instruction.b]);
    out[i] = registers[result];
  }
}
