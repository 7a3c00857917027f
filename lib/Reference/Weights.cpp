// SPDX-License-Identifier: Apache-2.0
/// \file
/// From checkpoint tensors to the machine's weights.

#include "Machine.h"

#include <cmath>

using namespace mlir;
using namespace mega;
using namespace mega::reference;

static ElementType elementTypeOf(Type type) {
  return type.isBF16() ? ElementType::BF16 : ElementType::F32;
}

std::vector<TensorSpec> mega::reference::tensorsOf(WeightOp weight) {
  std::string name = weight.getSymName().str();
  auto quant = dyn_cast<QuantType>(weight.getType());
  if (!quant) {
    auto tensor = cast<RankedTensorType>(weight.getType());
    return {{name, elementTypeOf(tensor.getElementType()),
             Shape(tensor.getShape())}};
  }
  auto shapeFor = [&](int64_t inputsPerRow) {
    Shape shape(quant.getShape());
    shape[shape.size() - 2] /= inputsPerRow;
    return shape;
  };
  return {{name + ".w_q", ElementType::U8, shapeFor(2)},
          {name + ".scales", elementTypeOf(quant.getScaleType()),
           shapeFor(quant.getGroup())},
          {name + ".zeros", elementTypeOf(quant.getZeroType()),
           shapeFor(quant.getGroup())}};
}

TensorSpec mega::reference::tensorOf(StateOp state, int64_t rows) {
  Shape shape(state.getTensorType().getShape());
  if (state.isCache())
    shape[0] = rows;
  return {state.getSymName().str(),
          elementTypeOf(state.getTensorType().getElementType()), shape};
}

/// The view of `spec`, or a diagnostic.
static FailureOr<TensorView> findTensor(WeightOp weight, const TensorSpec &spec,
                                        const TensorViews &views) {
  auto it = views.find(spec.name);
  if (it == views.end())
    return weight.emitOpError("misses checkpoint tensor '")
           << spec.name << "', expected " << typeText(spec.shape, spec.type);
  const TensorView &view = it->second;
  if (view.type != spec.type || view.shape != spec.shape)
    return weight.emitOpError("is given checkpoint tensor '")
           << spec.name << "' of type " << typeText(view.shape, view.type)
           << ", expected " << typeText(spec.shape, spec.type);
  return view;
}

/// Scales are what the packed layout holds (docs/bundle-format.md).
static LogicalResult checkScales(WeightOp weight, const TensorView &scales) {
  std::vector<float> values(numElements(scales.shape));
  widen(scales, 0, values.size(), values.data());
  for (auto [index, value] : llvm::enumerate(values))
    if (!(std::fabs(value) < 32768.0f))
      return weight.emitOpError("has tensor '")
             << weight.getSymName() << ".scales' with scale "
             << std::to_string(value) << " at element " << index
             << ", expected a magnitude below 32768";
  return success();
}

/// Zero points are codes: integers in 0..15.
static LogicalResult checkZeros(WeightOp weight, const TensorView &zeros) {
  std::vector<float> values(numElements(zeros.shape));
  widen(zeros, 0, values.size(), values.data());
  for (auto [index, value] : llvm::enumerate(values))
    if (!(value >= 0 && value <= 15) || value != static_cast<int>(value))
      return weight.emitOpError("has tensor '")
             << weight.getSymName() << ".zeros' with zero point "
             << std::to_string(value) << " at element " << index
             << ", expected an integer in 0..15";
  return success();
}

/// Part `index` of `parts` equal parts of a stacked tensor.
static TensorView partOf(TensorView view, int64_t index, int64_t parts) {
  int64_t bytes = numElements(view.shape) / parts * elementBytes(view.type);
  view.data = static_cast<const uint8_t *>(view.data) + index * bytes;
  view.shape = Shape(ArrayRef(view.shape).take_back(2));
  return view;
}

LogicalResult mega::reference::bindWeight(WeightOp weight,
                                          const TensorViews &views,
                                          Machine &machine) {
  SmallVector<TensorView, 3> tensors;
  for (const TensorSpec &spec : tensorsOf(weight)) {
    FailureOr<TensorView> view = findTensor(weight, spec, views);
    if (failed(view))
      return failure();
    tensors.push_back(*view);
  }
  auto quant = dyn_cast<QuantType>(weight.getType());
  if (!quant) {
    machine.dense[weight.getSymName()] = tensors.front();
    return success();
  }
  if (failed(checkScales(weight, tensors[1])))
    return failure();
  if (failed(checkZeros(weight, tensors[2])))
    return failure();
  QuantStack stack;
  int64_t parts = quant.getStack();
  for (int64_t i = 0; i < parts; ++i) {
    TensorView codes = partOf(tensors[0], i, parts);
    stack.push_back({quant.getInFeatures(), quant.getOutFeatures(),
                     quant.getGroup(), static_cast<const uint8_t *>(codes.data),
                     partOf(tensors[1], i, parts),
                     partOf(tensors[2], i, parts)});
  }
  machine.quantised[weight.getSymName()] = std::move(stack);
  return success();
}
