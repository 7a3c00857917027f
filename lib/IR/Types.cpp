// SPDX-License-Identifier: Apache-2.0
/// \file
/// !mega.quant and !mega.buffer: syntax, verification, sizes.

#include "mega/IR/Mega.h"

#include "mlir/IR/Builders.h"
#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace mega;

#define GET_TYPEDEF_CLASSES
#include "mega/IR/MegaTypes.cpp.inc"

void MegaDialect::registerTypes() {
  addTypes<
#define GET_TYPEDEF_LIST
#include "mega/IR/MegaTypes.cpp.inc"
      >();
}

/// Parses `AxBx...xT` into its dimensions and element type.
static ParseResult parseShapedBody(AsmParser &parser,
                                   SmallVectorImpl<int64_t> &shape,
                                   Type &element) {
  if (parser.parseDimensionList(shape, /*allowDynamic=*/false) ||
      parser.parseType(element))
    return failure();
  return success();
}

static void printShapedBody(AsmPrinter &printer, ArrayRef<int64_t> shape,
                            Type element) {
  for (int64_t dim : shape)
    printer << dim << 'x';
  printer << element;
}

//===----------------------------------------------------------------------===//
// QuantType
//===----------------------------------------------------------------------===//

Type QuantType::parse(AsmParser &parser) {
  SmallVector<int64_t> shape;
  Type code, scale, zero;
  int64_t group = 0;
  SMLoc loc = parser.getCurrentLocation();
  if (parser.parseLess() || parseShapedBody(parser, shape, code) ||
      parser.parseComma() || parser.parseKeyword("group") ||
      parser.parseEqual() || parser.parseInteger(group) ||
      parser.parseComma() || parser.parseKeyword("scale") ||
      parser.parseEqual() || parser.parseType(scale) || parser.parseComma() ||
      parser.parseKeyword("zero") || parser.parseEqual() ||
      parser.parseType(zero) || parser.parseGreater())
    return {};
  return getChecked([&] { return parser.emitError(loc); }, parser.getContext(),
                    shape, code, group, scale, zero);
}

void QuantType::print(AsmPrinter &printer) const {
  printer << '<';
  printShapedBody(printer, getShape(), getCodeType());
  printer << ", group = " << getGroup() << ", scale = " << getScaleType()
          << ", zero = " << getZeroType() << '>';
}

LogicalResult QuantType::verify(function_ref<InFlightDiagnostic()> emitError,
                                ArrayRef<int64_t> shape, Type codeType,
                                int64_t group, Type scaleType, Type zeroType) {
  if (shape.size() != 2 && shape.size() != 3)
    return emitError() << "quantised weight has rank " << shape.size()
                       << ", expected 2 (inputs x outputs) or 3 (experts x "
                          "inputs x outputs)";
  for (int64_t dim : shape)
    if (dim <= 0)
      return emitError() << "quantised weight has dimension " << dim
                         << ", expected a positive one";
  if (!codeType.isInteger(4))
    return emitError() << "quantised weight has codes of type " << codeType
                       << ", expected i4";
  if (!scaleType.isBF16() || !zeroType.isBF16())
    return emitError() << "quantised weight has scale " << scaleType
                       << " and zero " << zeroType << ", expected bf16";
  bool groupFitsUnit =
      group >= 32 && (kUnitInputs % group == 0 || group % kUnitInputs == 0);
  if (!groupFitsUnit)
    return emitError() << "quantised weight has group " << group
                       << ", expected 32, 64, 128 or a multiple of 128";
  int64_t inputs = shape[shape.size() - 2];
  if (inputs % group != 0)
    return emitError() << "quantised weight has " << inputs
                       << " inputs, expected a multiple of the group " << group;
  return success();
}

//===----------------------------------------------------------------------===//
// BufferType
//===----------------------------------------------------------------------===//

Type BufferType::parse(AsmParser &parser) {
  SmallVector<int64_t> shape;
  Type element;
  SMLoc loc = parser.getCurrentLocation();
  if (parser.parseLess() || parseShapedBody(parser, shape, element) ||
      parser.parseGreater())
    return {};
  return getChecked([&] { return parser.emitError(loc); }, parser.getContext(),
                    shape, element);
}

void BufferType::print(AsmPrinter &printer) const {
  printer << '<';
  printShapedBody(printer, getShape(), getElementType());
  printer << '>';
}

LogicalResult BufferType::verify(function_ref<InFlightDiagnostic()> emitError,
                                 ArrayRef<int64_t> shape, Type elementType) {
  if (!elementType.isBF16() && !elementType.isF32() &&
      !elementType.isInteger(32))
    return emitError() << "buffer has element type " << elementType
                       << ", expected bf16, f32 or i32";
  for (int64_t dim : shape)
    if (dim <= 0)
      return emitError() << "buffer has dimension " << dim
                         << ", expected a positive one";
  return success();
}

int64_t BufferType::getNumElements() const {
  int64_t count = 1;
  for (int64_t dim : getShape())
    count *= dim;
  return count;
}

int64_t BufferType::getByteSize() const {
  return getNumElements() * getElementType().getIntOrFloatBitWidth() / 8;
}
