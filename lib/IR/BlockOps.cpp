// SPDX-License-Identifier: Apache-2.0
/// \file
/// Level 0: declarations, the block, elementwise work, projections, mixing.

#include "SymbolChecks.h"

#include "llvm/Support/MathExtras.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/DialectImplementation.h"
#include "mlir/Interfaces/FunctionImplementation.h"

using namespace mlir;
using namespace mega;

/// An enum attribute as its bare keyword.
template <typename EnumAttr>
static ParseResult parseKeyword(OpAsmParser &parser, EnumAttr &attr) {
  auto value = FieldParser<decltype(attr.getValue())>::parse(parser);
  if (failed(value))
    return failure();
  attr = EnumAttr::get(parser.getContext(), *value);
  return success();
}
template <typename EnumAttr>
static void printKeyword(OpAsmPrinter &printer, Operation *, EnumAttr attr) {
  printer << stringifyEnum(attr.getValue());
}

#define GET_OP_CLASSES
#include "mega/IR/Mega.cpp.inc"

//===----------------------------------------------------------------------===//
// Declarations
//===----------------------------------------------------------------------===//

static bool isFloatElement(Type type) { return type.isBF16() || type.isF32(); }

/// Fails on a dimension of no elements: nothing could bind to it.
static LogicalResult verifyPositiveDims(Operation *op,
                                        RankedTensorType tensor) {
  for (int64_t dim : tensor.getShape())
    if (dim == 0)
      return op->emitOpError("has type ")
             << tensor << ", expected positive dimensions";
  return success();
}

LogicalResult WeightOp::verify() {
  if (isa<QuantType>(getType()))
    return success();
  auto tensor = dyn_cast<RankedTensorType>(getType());
  if (!tensor || !tensor.hasStaticShape() ||
      !isFloatElement(tensor.getElementType()))
    return emitOpError("has type ")
           << getType()
           << ", expected a static tensor of bf16 or f32 or a !mega.quant";
  return verifyPositiveDims(*this, tensor);
}

LogicalResult StateOp::verify() {
  auto tensor = dyn_cast<RankedTensorType>(getType());
  if (!tensor || !isFloatElement(tensor.getElementType()))
    return emitOpError("has type ")
           << getType() << ", expected a tensor of bf16 or f32";
  for (auto [index, dim] : llvm::enumerate(tensor.getShape()))
    if (ShapedType::isDynamic(dim) && index != 0)
      return emitOpError("has dynamic dimension ")
             << index << ", expected only the leading one to be dynamic";
  if (!tensor.hasStaticShape() && tensor.getRank() < 2)
    return emitOpError("has rank ")
           << tensor.getRank() << ", expected a cache of rank 2 or more";
  return verifyPositiveDims(*this, tensor);
}

ParseResult BlockOp::parse(OpAsmParser &parser, OperationState &result) {
  auto buildType = [](Builder &builder, ArrayRef<Type> inputs,
                      ArrayRef<Type> results,
                      function_interface_impl::VariadicFlag, std::string &) {
    return builder.getFunctionType(inputs, results);
  };
  return function_interface_impl::parseFunctionOp(
      parser, result, /*allowVariadic=*/false,
      getFunctionTypeAttrName(result.name), buildType,
      getArgAttrsAttrName(result.name), getResAttrsAttrName(result.name));
}

void BlockOp::print(OpAsmPrinter &p) {
  function_interface_impl::printFunctionOp(
      p, *this, /*isVariadic=*/false, getFunctionTypeAttrName(),
      getArgAttrsAttrName(), getResAttrsAttrName());
}

LogicalResult BlockOp::verify() {
  auto isVector = [](Type type) {
    auto tensor = dyn_cast<RankedTensorType>(type);
    return tensor && tensor.getRank() == 1 && tensor.hasStaticShape() &&
           tensor.getDimSize(0) > 0 && isFloatElement(tensor.getElementType());
  };
  if (getArgumentTypes().size() != 1 || getResultTypes().size() != 1)
    return emitOpError("has ")
           << getArgumentTypes().size() << " arguments and "
           << getResultTypes().size() << " results, expected one of each";
  if (!isVector(getArgumentTypes().front()) ||
      !isVector(getResultTypes().front()))
    return emitOpError("has type ")
           << getFunctionType()
           << ", expected a non-empty rank-1 tensor of bf16 or f32 in and out";
  return success();
}

LogicalResult ReturnOp::verify() {
  auto block = cast<BlockOp>((*this)->getParentOp());
  if (TypeRange(getResults()) != TypeRange(block.getResultTypes()))
    return emitOpError("returns ")
           << getResults().getTypes() << ", expected the block's result type "
           << block.getResultTypes();
  return success();
}

//===----------------------------------------------------------------------===//
// MapOp
//===----------------------------------------------------------------------===//

ParseResult MapOp::parse(OpAsmParser &parser, OperationState &result) {
  SmallVector<OpAsmParser::Argument> arguments;
  SmallVector<OpAsmParser::UnresolvedOperand> operands;
  Type f32 = parser.getBuilder().getF32Type();
  auto parsePair = [&]() -> ParseResult {
    OpAsmParser::Argument argument;
    OpAsmParser::UnresolvedOperand operand;
    if (parser.parseArgument(argument) || parser.parseEqual() ||
        parser.parseOperand(operand))
      return failure();
    argument.type = f32;
    arguments.push_back(argument);
    operands.push_back(operand);
    return success();
  };
  SmallVector<Type> types;
  Type resultType;
  SMLoc loc = parser.getCurrentLocation();
  if (parser.parseCommaSeparatedList(OpAsmParser::Delimiter::Paren,
                                     parsePair) ||
      parser.parseOptionalAttrDict(result.attributes) || parser.parseColon() ||
      parser.parseLParen() || parser.parseTypeList(types) ||
      parser.parseRParen() || parser.parseArrow() ||
      parser.parseType(resultType) ||
      parser.resolveOperands(operands, types, loc, result.operands) ||
      parser.parseRegion(*result.addRegion(), arguments))
    return failure();
  result.addTypes(resultType);
  return success();
}

void MapOp::print(OpAsmPrinter &p) {
  p << '(';
  llvm::interleaveComma(
      llvm::zip_equal(getBody().getArguments(), getInputs()), p,
      [&](auto pair) { p << std::get<0>(pair) << " = " << std::get<1>(pair); });
  p << ')';
  p.printOptionalAttrDict((*this)->getAttrs());
  p << " : (" << getInputs().getTypes() << ") -> " << getResult().getType()
    << ' ';
  p.printRegion(getBody(), /*printEntryBlockArgs=*/false);
}

/// Scalar ops that an elementwise region may hold.
static bool isScalarOp(Operation *op) {
  return isa<arith::AddFOp, arith::SubFOp, arith::MulFOp, arith::DivFOp,
             arith::NegFOp, arith::MaximumFOp, arith::MinimumFOp,
             arith::ConstantOp, math::ExpOp, math::Log1pOp, math::TanhOp,
             math::SqrtOp, math::RsqrtOp, math::AbsFOp, YieldOp>(op);
}

/// Checks a region that computes one f32 from f32 scalars.
LogicalResult mega::verifyScalarRegion(Operation *owner, Region &region,
                                       unsigned arity) {
  if (region.getNumArguments() != arity)
    return owner->emitOpError("region has ")
           << region.getNumArguments() << " arguments, expected " << arity;
  for (BlockArgument argument : region.getArguments())
    if (!argument.getType().isF32())
      return owner->emitOpError("region argument has type ")
             << argument.getType() << ", expected f32";
  Block &body = region.front();
  if (body.empty() || !isa<YieldOp>(body.back()))
    return owner->emitOpError("region must end with mega.yield");
  for (Operation &op : body) {
    if (!isScalarOp(&op))
      return owner->emitOpError("region holds '")
             << op.getName()
             << "', expected scalar arith or math ops that elementwise work "
                "supports";
    for (Value result : op.getResults())
      if (!result.getType().isF32())
        return owner->emitOpError("region holds a value of type ")
               << result.getType() << ", expected f32";
    for (Value operand : op.getOperands())
      if (operand.getParentRegion() != &region)
        return owner->emitOpError(
            "region uses a value from outside it, expected only its arguments");
  }
  return success();
}

LogicalResult MapOp::verify() {
  if (getInputs().empty())
    return emitOpError("has 0 operands, expected at least 1");
  ArrayRef<int64_t> shape = tensorTypeOf(getResult()).getShape();
  for (auto [index, input] : llvm::enumerate(getInputs()))
    if (tensorTypeOf(input).getShape() != shape)
      return emitOpError("operand #")
             << index << " has type " << input.getType()
             << ", expected the result's shape, as in "
             << getResult().getType();
  return verifyScalarRegion(*this, getBody(), getInputs().size());
}

//===----------------------------------------------------------------------===//
// Views
//===----------------------------------------------------------------------===//

LogicalResult ReshapeOp::verify() {
  RankedTensorType from = tensorTypeOf(getX()), to = tensorTypeOf(getResult());
  if (from.getNumElements() != to.getNumElements() ||
      from.getElementType() != to.getElementType())
    return emitOpError("turns ")
           << from << " into " << to
           << ", expected the same number and type of elements";
  return success();
}

LogicalResult SliceOp::verify() {
  RankedTensorType from = tensorTypeOf(getX()), to = tensorTypeOf(getResult());
  if (from.getRank() != to.getRank() || from.getRank() == 0 ||
      from.getElementType() != to.getElementType() ||
      from.getShape().drop_back() != to.getShape().drop_back())
    return emitOpError("takes ")
           << to << " from " << from
           << ", expected them to differ in the last dimension only";
  int64_t offset = getOffset(), size = to.getShape().back();
  // Not offset + size: an absurd offset must not wrap around into the range.
  if (size < 1 || offset < 0 || offset > from.getShape().back() - size)
    return emitOpError("takes ")
           << size << " elements from " << offset
           << " of the last dimension, expected a non-empty range inside [0, "
           << from.getShape().back() << ")";
  return success();
}

//===----------------------------------------------------------------------===//
// RmsNormOp
//===----------------------------------------------------------------------===//

LogicalResult RmsNormOp::verify() {
  RankedTensorType from = tensorTypeOf(getX()), to = tensorTypeOf(getResult());
  if (from.getShape() != to.getShape() || from.getRank() == 0)
    return emitOpError("maps ")
           << from << " to " << to << ", expected one shape of rank 1 or more";
  if (getEps().convertToDouble() < 0)
    return emitOpError("has eps ")
           << getEps().convertToDouble() << ", expected a non-negative one";
  return success();
}

LogicalResult RmsNormOp::verifySymbolUses(SymbolTableCollection &symbols) {
  auto weight = lookupDenseWeight(*this, symbols, getWeightAttr(), 1);
  if (failed(weight))
    return failure();
  return expectSize(*this, "weight @" + getWeight(), "elements",
                    weight->getDimSize(0),
                    tensorTypeOf(getX()).getShape().back());
}

//===----------------------------------------------------------------------===//
// LinearOp
//===----------------------------------------------------------------------===//

LogicalResult LinearOp::verify() {
  RankedTensorType from = tensorTypeOf(getX()), to = tensorTypeOf(getResult());
  if (from.getRank() != 1 || to.getRank() != 1)
    return emitOpError("maps ")
           << from << " to " << to << ", expected rank-1 tensors";
  return success();
}

LogicalResult LinearOp::verifySymbolUses(SymbolTableCollection &symbols) {
  FailureOr<Type> type = lookupWeight(*this, symbols, getWeightAttr());
  if (failed(type))
    return failure();
  int64_t inputs, outputs;
  if (auto quant = dyn_cast<QuantType>(*type)) {
    if (quant.getShape().size() != 2)
      return emitOpError("uses weight @") << getWeight() << " of type " << *type
                                          << ", expected a single matrix";
    inputs = quant.getInFeatures();
    outputs = quant.getOutFeatures();
  } else {
    auto dense = lookupDenseWeight(*this, symbols, getWeightAttr(), 2);
    if (failed(dense))
      return failure();
    outputs = dense->getDimSize(0);
    inputs = dense->getDimSize(1);
  }
  if (failed(expectSize(*this, "weight @" + getWeight(), "inputs", inputs,
                        tensorTypeOf(getX()).getNumElements())))
    return failure();
  return expectSize(*this, "weight @" + getWeight(), "outputs", outputs,
                    tensorTypeOf(getResult()).getNumElements());
}

/// True if the linear's weight is quantised.
static bool isQuantLinear(LinearOp op) {
  auto weight =
      SymbolTable::lookupNearestSymbolFrom<WeightOp>(op, op.getWeightAttr());
  return weight && isa<QuantType>(weight.getType());
}

int64_t LinearOp::getTileExtent() {
  return isQuantLinear(*this) ? kUnitOutputs : 1;
}
int64_t LinearOp::getTileCount() {
  return llvm::divideCeil(tensorTypeOf(getResult()).getNumElements(),
                          getTileExtent());
}
bool LinearOp::canSplit() { return isQuantLinear(*this); }
int64_t LinearOp::getReductionSteps() {
  return llvm::divideCeil(tensorTypeOf(getX()).getNumElements(), kUnitInputs);
}

//===----------------------------------------------------------------------===//
// ShortConvOp
//===----------------------------------------------------------------------===//

LogicalResult ShortConvOp::verify() {
  RankedTensorType from = tensorTypeOf(getX()), to = tensorTypeOf(getResult());
  if (from.getRank() != 1 || from.getShape() != to.getShape())
    return emitOpError("maps ")
           << from << " to " << to << ", expected rank-1 tensors of one size";
  return success();
}

LogicalResult ShortConvOp::verifySymbolUses(SymbolTableCollection &symbols) {
  bool stacked = getIndex().has_value();
  auto weight =
      lookupDenseWeight(*this, symbols, getWeightAttr(), stacked ? 3 : 2);
  auto state = lookupState(*this, symbols, getStateAttr());
  if (failed(weight) || failed(state))
    return failure();
  if (stacked) {
    int64_t index = *getIndex(), slices = weight->getDimSize(0);
    if (index < 0 || index >= slices)
      return emitOpError("takes slice ")
             << index << " of weight @" << getWeight()
             << ", expected one in [0, " << slices << ")";
  }
  int64_t channels = tensorTypeOf(getX()).getDimSize(0);
  int64_t taps = weight->getShape().back();
  if (failed(expectSize(*this, "weight @" + getWeight(), "channels",
                        weight->getShape().drop_back().back(), channels)))
    return failure();
  auto wanted = RankedTensorType::get({taps - 1, channels},
                                      tensorTypeOf(getX()).getElementType());
  if (*state != wanted)
    return emitOpError("uses state @")
           << getState() << " of type " << *state << ", expected " << wanted;
  return success();
}

//===----------------------------------------------------------------------===//
// DeltaRuleOp
//===----------------------------------------------------------------------===//

LogicalResult DeltaRuleOp::verify() {
  RankedTensorType q = tensorTypeOf(getQ()), k = tensorTypeOf(getK()),
                   v = tensorTypeOf(getV());
  if (q.getRank() != 2 || q.getShape() != k.getShape())
    return emitOpError("has q ")
           << q << " and k " << k << ", expected one shape (heads x keys)";
  if (v.getRank() != 2 || v.getDimSize(0) != q.getDimSize(0) ||
      tensorTypeOf(getResult()).getShape() != v.getShape())
    return emitOpError("has v ")
           << v << " and result " << getResult().getType()
           << ", expected one shape (" << q.getDimSize(0) << " x values)";
  SmallVector<int64_t> perHead = {q.getDimSize(0)};
  if (tensorTypeOf(getBeta()).getShape() != ArrayRef(perHead))
    return emitOpError("has beta ")
           << getBeta().getType() << ", expected one value for each of "
           << q.getDimSize(0) << " heads";
  if ((getKind() == DecayKind::None) != !getDecay())
    return emitOpError("has decay(")
           << stringifyDecayKind(getKind()) << ") "
           << (getDecay() ? "with" : "without") << " a decay operand";
  if (getDecay()) {
    ArrayRef<int64_t> wanted =
        getKind() == DecayKind::Head ? ArrayRef(perHead) : q.getShape();
    if (tensorTypeOf(getDecay()).getShape() != wanted)
      return emitOpError("has decay operand ")
             << getDecay().getType() << ", expected shape [" << wanted
             << "] for decay(" << stringifyDecayKind(getKind()) << ")";
  }
  return success();
}

LogicalResult DeltaRuleOp::verifySymbolUses(SymbolTableCollection &symbols) {
  auto state = lookupState(*this, symbols, getStateAttr());
  if (failed(state))
    return failure();
  RankedTensorType k = tensorTypeOf(getK()), v = tensorTypeOf(getV());
  auto wanted =
      RankedTensorType::get({k.getDimSize(0), k.getDimSize(1), v.getDimSize(1)},
                            Float32Type::get(getContext()));
  if (*state != wanted)
    return emitOpError("uses state @")
           << getState() << " of type " << *state << ", expected " << wanted;
  return success();
}

/// Value columns of one tile: the widest strip (at most 32, a warp of lanes)
/// that divides the head.
static int64_t deltaStrip(int64_t values) {
  for (int64_t strip = 32; strip > 1; strip /= 2)
    if (values % strip == 0)
      return strip;
  return 1;
}

int64_t DeltaRuleOp::getTileExtent() {
  return deltaStrip(tensorTypeOf(getV()).getDimSize(1));
}
int64_t DeltaRuleOp::getTileCount() {
  return tensorTypeOf(getV()).getNumElements() / getTileExtent();
}
bool DeltaRuleOp::canSplit() { return false; }
int64_t DeltaRuleOp::getReductionSteps() { return 1; }

//===----------------------------------------------------------------------===//
// RopeOp
//===----------------------------------------------------------------------===//

LogicalResult RopeOp::verify() {
  RankedTensorType from = tensorTypeOf(getX()), to = tensorTypeOf(getResult());
  if (from.getShape() != to.getShape() || from.getRank() == 0)
    return emitOpError("maps ")
           << from << " to " << to << ", expected one shape of rank 1 or more";
  int64_t offset = getOffset(), size = getSize(), last = from.getShape().back();
  if (size <= 0 || size % 2 != 0)
    return emitOpError("rotates ")
           << size << " elements, expected a positive even number";
  // Not offset + size: an absurd offset must not wrap around into the range.
  if (offset < 0 || offset > last - size)
    return emitOpError("rotates ")
           << size << " elements from " << offset
           << " of the last dimension, expected a range inside [0, " << last
           << ")";
  if (getTheta().convertToDouble() <= 0)
    return emitOpError("has theta ")
           << getTheta().convertToDouble() << ", expected a positive one";
  return success();
}
