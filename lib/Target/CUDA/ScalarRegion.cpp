// SPDX-License-Identifier: Apache-2.0
/// \file
/// Straight-line scalar code. The dialect's verifier admits exactly these ops.

#include "ScalarRegion.h"
#include "Names.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "llvm/ADT/TypeSwitch.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;
using namespace mega;

/// The expression of `op` over its operands' names.
static std::string expressionOf(Operation *op, ArrayRef<std::string> in) {
  return TypeSwitch<Operation *, std::string>(op)
      .Case([&](arith::AddFOp) { return in[0] + " + " + in[1]; })
      .Case([&](arith::SubFOp) { return in[0] + " - " + in[1]; })
      .Case([&](arith::MulFOp) { return in[0] + " * " + in[1]; })
      .Case([&](arith::DivFOp) { return in[0] + " / " + in[1]; })
      .Case([&](arith::NegFOp) { return "-" + in[0]; })
      .Case([&](arith::MaximumFOp) {
        return "mega::maximum(" + in[0] + ", " + in[1] + ")";
      })
      .Case([&](arith::MinimumFOp) {
        return "mega::minimum(" + in[0] + ", " + in[1] + ")";
      })
      .Case([&](arith::ConstantOp constant) {
        return floatLiteral(
            cast<FloatAttr>(constant.getValue()).getValue().convertToFloat());
      })
      .Case([&](math::ExpOp) { return "mega::exponential(" + in[0] + ")"; })
      .Case([&](math::Log1pOp) { return "log1pf(" + in[0] + ")"; })
      .Case([&](math::TanhOp) { return "tanhf(" + in[0] + ")"; })
      .Case([&](math::SqrtOp) { return "sqrtf(" + in[0] + ")"; })
      .Case([&](math::RsqrtOp) { return "1.0f / sqrtf(" + in[0] + ")"; })
      .Case([&](math::AbsFOp) { return "fabsf(" + in[0] + ")"; });
}

std::string mega::emitScalarLambda(Region &region, StringRef indent) {
  std::string text;
  llvm::raw_string_ostream os(text);
  DenseMap<Value, std::string> names;
  os << "[](";
  for (BlockArgument argument : region.getArguments()) {
    std::string name = "a" + std::to_string(argument.getArgNumber());
    os << (argument.getArgNumber() ? ", " : "") << "float " << name;
    names[argument] = name;
  }
  os << ") {\n";
  unsigned next = 0;
  for (Operation &op : region.front()) {
    SmallVector<std::string> in;
    for (Value operand : op.getOperands())
      in.push_back(names.lookup(operand));
    if (isa<YieldOp>(op)) {
      os << indent << "  return " << in[0] << ";\n" << indent << "}";
      break;
    }
    std::string name = "v" + std::to_string(next++);
    os << indent << "  const float " << name << " = " << expressionOf(&op, in)
       << ";\n";
    names[op.getResult(0)] = name;
  }
  return text;
}
