// SPDX-License-Identifier: Apache-2.0
/// \file
/// What a block wants.

#include "Description.h"

#include "Tensors.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Parser/Parser.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/SourceMgr.h"

using namespace llvm;
using namespace mega;
using namespace mega::run;
using megalith::TensorDesc;

Description::Description() : context(mlir::MLIRContext::Threading::DISABLED) {
  context.loadDialect<MegaDialect, mlir::arith::ArithDialect,
                      mlir::math::MathDialect>();
  // A message names the place; a whole block after it would hide it.
  context.printOpOnDiagnostic(false);
}

static TensorDesc describe(const reference::TensorSpec &spec) {
  TensorDesc desc;
  desc.name = spec.name;
  desc.dtype = dtypeOf(spec.type);
  desc.shape.assign(spec.shape.begin(), spec.shape.end());
  desc.bytes =
      reference::numElements(spec.shape) * reference::elementBytes(spec.type);
  return desc;
}

static megalith::WeightDesc describe(WeightOp op) {
  megalith::WeightDesc desc;
  desc.name = op.getSymName().str();
  for (const reference::TensorSpec &spec : reference::tensorsOf(op))
    desc.tensors.push_back(describe(spec));
  if (auto quant = dyn_cast<QuantType>(op.getType())) {
    desc.kind = megalith::WeightDesc::Kind::Quant;
    desc.shape = quant.getShape().vec();
    desc.group = quant.getGroup();
  } else {
    desc.shape = desc.tensors.front().shape;
  }
  return desc;
}

static megalith::StateDesc describe(StateOp op) {
  TensorDesc unit = describe(reference::tensorOf(op, 1));
  megalith::StateDesc desc;
  desc.name = unit.name;
  desc.dtype = unit.dtype;
  desc.shape = unit.shape;
  desc.unitBytes = unit.bytes;
  if (op.isCache())
    desc.shape[0] = -1;
  return desc;
}

static TensorDesc describe(mlir::Type type) {
  auto tensor = cast<mlir::RankedTensorType>(type);
  return describe(reference::TensorSpec{"",
                                        tensor.getElementType().isBF16()
                                            ? reference::ElementType::BF16
                                            : reference::ElementType::F32,
                                        reference::Shape(tensor.getShape())});
}

Error Description::parse(const std::string &path) {
  if (path != "-" && !sys::fs::exists(path))
    return createStringError("description '" + path +
                             "' does not exist, expected a .mlir file");
  llvm::SourceMgr sources;
  mlir::SourceMgrDiagnosticHandler handler(sources, &context);
  module = mlir::parseSourceFile<mlir::ModuleOp>(path, sources, &context);
  if (!module)
    return createStringError("'" + path + "' is not a valid description");
  auto found = reference::findBlock(*module);
  if (failed(found))
    return createStringError("'" + path + "' has no block to run");
  blockOp = *found;
  wants.block = blockOp.getSymName().str();
  wants.input = describe(blockOp.getArgumentTypes().front());
  wants.output = describe(blockOp.getResultTypes().front());
  for (auto op : module->getOps<WeightOp>())
    wants.weights.push_back(describe(op));
  for (auto op : module->getOps<StateOp>())
    wants.states.push_back(describe(op));
  return Error::success();
}

/// Name, type and shape of everything that a block binds, a line each.
static std::vector<std::string> interfaceOf(const megalith::Manifest &m) {
  auto line = [](const std::string &name, megalith::DType dtype,
                 const std::vector<int64_t> &shape) {
    return formatv("{0}: {1} {2}", name, megalith::shapeText(shape),
                   megalith::dtypeName(dtype))
        .str();
  };
  std::vector<std::string> lines = {
      line("input", m.input.dtype, m.input.shape),
      line("output", m.output.dtype, m.output.shape)};
  for (const megalith::WeightDesc &weight : m.weights)
    for (const TensorDesc &tensor : weight.tensors)
      lines.push_back("weight " +
                      line(tensor.name, tensor.dtype, tensor.shape));
  for (const megalith::StateDesc &state : m.states)
    lines.push_back("state " + line(state.name, state.dtype, state.shape));
  llvm::sort(lines);
  return lines;
}

Expected<std::unique_ptr<Description>>
Description::load(const Options &options) {
  std::unique_ptr<Description> description(new Description());
  if (!options.block.empty())
    if (Error error = description->parse(options.block))
      return error;
  if (options.bundle.empty())
    return description;
  auto bundle = megalith::loadBundle(options.bundle);
  if (!bundle)
    return createStringError(bundle.status().message());
  description->kernel = *bundle;
  const megalith::Manifest &manifest = (*bundle)->manifest;
  if (options.block.empty()) {
    description->wants = manifest;
    return description;
  }
  auto text = interfaceOf(description->wants), kernel = interfaceOf(manifest);
  std::vector<std::string> onlyText, onlyKernel;
  std::set_difference(text.begin(), text.end(), kernel.begin(), kernel.end(),
                      std::back_inserter(onlyText));
  std::set_difference(kernel.begin(), kernel.end(), text.begin(), text.end(),
                      std::back_inserter(onlyKernel));
  if (onlyText.empty() && onlyKernel.empty())
    return description;
  auto nameOf = [](StringRef line) { return line.split(": ").first; };
  std::string first = onlyText.empty() ? onlyKernel.front() : onlyText.front();
  // The first thing that differs, as each side has it.
  auto side = [&](const std::vector<std::string> &lines) {
    for (const std::string &line : lines)
      if (nameOf(line) == nameOf(first))
        return line;
    return "no " + nameOf(first).str();
  };
  return createStringError(formatv("'{0}' has {1}, but bundle '{2}' has {3}",
                                   options.block, side(onlyText),
                                   options.bundle, side(onlyKernel))
                               .str());
}
