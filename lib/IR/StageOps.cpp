// SPDX-License-Identifier: Apache-2.0
/// \file
/// Level 1: programs, stages, loads and stores.

#include "SymbolChecks.h"

#include "mlir/IR/Builders.h"

using namespace mlir;
using namespace mega;

//===----------------------------------------------------------------------===//
// ProgramOp
//===----------------------------------------------------------------------===//

/// Parses `(%in, %out) : type, type`.
static ParseResult
parseVectorArguments(OpAsmParser &parser,
                     SmallVectorImpl<OpAsmParser::Argument> &arguments) {
  SMLoc loc = parser.getCurrentLocation();
  SmallVector<Type> types;
  if (parser.parseArgumentList(arguments, OpAsmParser::Delimiter::Paren) ||
      parser.parseColon() || parser.parseTypeList(types))
    return failure();
  if (types.size() != arguments.size())
    return parser.emitError(loc)
           << "has " << arguments.size() << " arguments and " << types.size()
           << " types, expected as many";
  for (auto [argument, type] : llvm::zip_equal(arguments, types))
    argument.type = type;
  return success();
}

static void printVectorArguments(OpAsmPrinter &p, Region &body) {
  p << '(';
  llvm::interleaveComma(body.getArguments(), p);
  p << ") : " << body.getArgumentTypes();
}

/// A container's two arguments are the caller's vectors.
static LogicalResult verifyVectorArguments(Operation *op, Region &body) {
  if (body.getNumArguments() != 2 ||
      !llvm::all_of(body.getArgumentTypes(), llvm::IsaPred<BufferType>))
    return op->emitOpError("has arguments (")
           << body.getArgumentTypes()
           << "), expected the input and the output buffer";
  return success();
}

ParseResult ProgramOp::parse(OpAsmParser &parser, OperationState &result) {
  StringAttr name;
  SmallVector<OpAsmParser::Argument> arguments;
  Region *body = result.addRegion();
  if (parser.parseSymbolName(name, SymbolTable::getSymbolAttrName(),
                             result.attributes) ||
      parseVectorArguments(parser, arguments) ||
      parser.parseOptionalAttrDictWithKeyword(result.attributes) ||
      parser.parseRegion(*body, arguments))
    return failure();
  if (body->empty())
    body->emplaceBlock();
  return success();
}

void ProgramOp::print(OpAsmPrinter &p) {
  p << ' ';
  p.printSymbolName(getSymName());
  printVectorArguments(p, getBody());
  p.printOptionalAttrDictWithKeyword((*this)->getAttrs(),
                                     {SymbolTable::getSymbolAttrName()});
  p << ' ';
  p.printRegion(getBody(), /*printEntryBlockArgs=*/false);
}

LogicalResult ProgramOp::verify() {
  return verifyVectorArguments(*this, getBody());
}

//===----------------------------------------------------------------------===//
// KernelOp
//===----------------------------------------------------------------------===//

ParseResult KernelOp::parse(OpAsmParser &parser, OperationState &result) {
  StringAttr name;
  SmallVector<OpAsmParser::Argument> arguments;
  Region *body = result.addRegion();
  if (parser.parseSymbolName(name, SymbolTable::getSymbolAttrName(),
                             result.attributes) ||
      parseVectorArguments(parser, arguments) ||
      parser.parseOptionalAttrDictWithKeyword(result.attributes) ||
      parser.parseRegion(*body, arguments))
    return failure();
  return success();
}

void KernelOp::print(OpAsmPrinter &p) {
  p << ' ';
  p.printSymbolName(getSymName());
  printVectorArguments(p, getBody());
  p.printOptionalAttrDictWithKeyword((*this)->getAttrs(),
                                     {SymbolTable::getSymbolAttrName()});
  p << ' ';
  p.printRegion(getBody(), /*printEntryBlockArgs=*/false);
}

LogicalResult KernelOp::verify() {
  return verifyVectorArguments(*this, getBody());
}

//===----------------------------------------------------------------------===//
// StageOp
//===----------------------------------------------------------------------===//

LogicalResult StageOp::verify() {
  if (!getTiles())
    return success();
  int64_t next = 0;
  for (Operation &op : getBody().front())
    if (auto anchor = dyn_cast<AnchorOpInterface>(op)) {
      TilingAttr tiling = anchor.getTilingAttr();
      if (!tiling)
        return op.emitOpError("has no tiling in a partitioned stage");
      if (tiling.getBegin() != next)
        return op.emitOpError("has tiles from ")
               << tiling.getBegin() << ", expected from " << next
               << ", where the previous anchor's end";
      next += tiling.getCount();
    }
  return expectSize(*this, "tile list", "tiles", *getTiles(), next);
}

//===----------------------------------------------------------------------===//
// Loads and stores
//===----------------------------------------------------------------------===//

/// Elements of `type` per slot when `slotted`, of the whole otherwise.
static int64_t elementsPerSlot(BufferType type, bool slotted) {
  int64_t count = type.getNumElements();
  return slotted && !type.getShape().empty() ? count / type.getShape()[0]
                                             : count;
}

static LogicalResult verifyTransfer(Operation *op, RankedTensorType tensor,
                                    BufferType buffer, bool slotted) {
  if (!slotted && tensor.getElementType() != buffer.getElementType())
    return op->emitOpError("moves ")
           << tensor << " and " << buffer << ", expected one element type";
  return expectSize(op, slotted ? "slot" : "buffer", "elements",
                    elementsPerSlot(buffer, slotted), tensor.getNumElements());
}

LogicalResult LoadOp::verify() {
  return verifyTransfer(*this, tensorTypeOf(getResult()), getBuffer().getType(),
                        /*slotted=*/false);
}

LogicalResult LoadSumOp::verify() {
  if (!getBuffer().getType().getElementType().isF32())
    return emitOpError("adds slots of ")
           << getBuffer().getType() << ", expected f32 partial sums";
  return verifyTransfer(*this, tensorTypeOf(getResult()), getBuffer().getType(),
                        /*slotted=*/true);
}

LogicalResult StoreOp::verify() {
  auto anchor = getValue().getDefiningOp<AnchorOpInterface>();
  bool slotted =
      anchor && anchor.getTilingAttr() && anchor.getTilingAttr().getSplit();
  return verifyTransfer(*this, tensorTypeOf(getValue()), getBuffer().getType(),
                        slotted);
}

//===----------------------------------------------------------------------===//
// ElementwiseOp
//===----------------------------------------------------------------------===//

int64_t ElementwiseOp::getTileExtent() { return 1; }
int64_t ElementwiseOp::getTileCount() {
  return tensorTypeOf(getResult()).getNumElements();
}
bool ElementwiseOp::canSplit() { return false; }
int64_t ElementwiseOp::getReductionSteps() { return 1; }
