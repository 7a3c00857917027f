// SPDX-License-Identifier: Apache-2.0
/// \file
/// The numbers of a run.

#include "Tensors.h"

#include "mega/runtime/RandomInit.h"
#include "mega/runtime/Safetensors.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/ErrorHandling.h"
#include "llvm/Support/FormatVariadic.h"

using namespace llvm;
using namespace mega;
using namespace mega::run;
using megalith::DType;
using megalith::Manifest;
using megalith::Tensor;
using megalith::TensorMap;
using reference::ElementType;

DType mega::run::dtypeOf(ElementType type) {
  switch (type) {
  case ElementType::U8:
    return DType::U8;
  case ElementType::I32:
    return DType::I32;
  case ElementType::BF16:
    return DType::BF16;
  case ElementType::F32:
    return DType::F32;
  }
  llvm_unreachable("unknown element type");
}

ElementType mega::run::elementTypeOf(DType dtype) {
  switch (dtype) {
  case DType::U8:
    return ElementType::U8;
  case DType::I32:
    return ElementType::I32;
  case DType::BF16:
    return ElementType::BF16;
  case DType::F32:
    return ElementType::F32;
  default:
    llvm_unreachable("checked tensors have one of the block's four types");
  }
}

reference::TensorView mega::run::viewOf(const Tensor &tensor) {
  return {elementTypeOf(tensor.dtype),
          reference::Shape(tensor.shape.begin(), tensor.shape.end()),
          tensor.data};
}

std::vector<float> mega::run::valuesOf(const Tensor &tensor) {
  reference::TensorView view = viewOf(tensor);
  std::vector<float> values(reference::numElements(view.shape));
  reference::widen(view, 0, values.size(), values.data());
  return values;
}

Tensor mega::run::tensorOf(const std::vector<float> &values, DType dtype,
                           std::vector<int64_t> shape) {
  std::vector<uint8_t> bytes = reference::narrow(values, elementTypeOf(dtype));
  return Tensor::copyOf(dtype, std::move(shape), bytes.data());
}

//===----------------------------------------------------------------------===//
// Checks
//===----------------------------------------------------------------------===//

/// An error of a file.
template <typename... Args>
static Error bad(const char *format, Args &&...args) {
  return createStringError(formatv(format, std::forward<Args>(args)...).str());
}

static std::string typeText(DType dtype, const std::vector<int64_t> &shape) {
  return megalith::shapeText(shape) + " " + megalith::dtypeName(dtype);
}

/// The tensor `name` of a file, of that type and shape.
static Expected<Tensor> take(const TensorMap &file, const std::string &path,
                             const std::string &name, DType dtype,
                             const std::vector<int64_t> &shape) {
  const Tensor *tensor = file.find(name);
  if (!tensor)
    return bad("'{0}' misses tensor '{1}', expected {2}", path, name,
               typeText(dtype, shape));
  if (tensor->dtype != dtype || tensor->shape != shape)
    return bad("'{0}' has tensor '{1}' of type {2}, expected {3}", path, name,
               typeText(tensor->dtype, tensor->shape), typeText(dtype, shape));
  return *tensor;
}

/// Every name of the file under `prefix` must be wanted.
static Error refuseUnknown(const TensorMap &file, const std::string &path,
                           StringRef prefix, const StringSet<> &wanted,
                           const char *kind) {
  for (const auto &[name, tensor] : file.tensors)
    if (StringRef rest(name); rest.consume_front(prefix))
      if (!wanted.contains(rest))
        return bad("'{0}' has tensor '{1}', but the block has no {2} '{3}'",
                   path, name, kind, rest);
  return Error::success();
}

//===----------------------------------------------------------------------===//
// Weights
//===----------------------------------------------------------------------===//

Expected<TensorMap> mega::run::loadWeights(const Options &options,
                                           const Manifest &manifest) {
  if (options.weights.seed) {
    auto made = megalith::randomWeights(
        manifest, *options.weights.seed, options.threads,
        options.weights.balanced ? megalith::Spread::Balanced
                                 : megalith::Spread::Fixed);
    if (!made)
      return bad("{0}", made.status().message());
    return std::move(*made);
  }
  const std::string &path = options.weights.path;
  auto file = megalith::readSafetensors(path);
  if (!file)
    return bad("{0}", file.status().message());
  TensorMap weights;
  StringSet<> wanted;
  for (const megalith::WeightDesc &weight : manifest.weights)
    for (const megalith::TensorDesc &desc : weight.tensors) {
      Expected<Tensor> tensor =
          take(*file, path, options.weightsPrefix + desc.name, desc.dtype,
               desc.shape);
      if (!tensor)
        return tensor.takeError();
      weights.tensors[desc.name] = *tensor;
      wanted.insert(desc.name);
    }
  if (!options.extraTensors)
    if (Error error =
            refuseUnknown(*file, path, options.weightsPrefix, wanted, "weight"))
      return error;
  return weights;
}

//===----------------------------------------------------------------------===//
// States
//===----------------------------------------------------------------------===//

static Expected<InitialState>
readStates(const Options &options, const Manifest &manifest, int64_t context) {
  const std::string &path = options.state.path;
  auto file = megalith::readSafetensors(path);
  if (!file)
    return bad("{0}", file.status().message());
  InitialState initial;
  initial.context = context;
  StringSet<> wanted;
  for (const megalith::StateDesc &state : manifest.states) {
    std::string name = options.statePrefix + state.name;
    std::vector<int64_t> shape = state.shape;
    if (state.isCache()) {
      const Tensor *found = file->find(name);
      if (initial.context < 0 && found && !found->shape.empty())
        initial.context = found->shape[0];
      shape[0] = std::max<int64_t>(initial.context, 0);
    }
    Expected<Tensor> tensor = take(*file, path, name, state.dtype, shape);
    if (!tensor)
      return tensor.takeError();
    initial.states.tensors[state.name] = *tensor;
    wanted.insert(state.name);
  }
  initial.context = std::max<int64_t>(initial.context, 0);
  if (!options.statePrefix.empty())
    if (Error error =
            refuseUnknown(*file, path, options.statePrefix, wanted, "state"))
      return error;
  return initial;
}

Expected<InitialState> mega::run::loadStates(const Options &options,
                                             const Manifest &manifest,
                                             int64_t context, uint64_t seed) {
  if (!options.state.seed)
    return readStates(options, manifest, context);
  auto made = megalith::randomStates(manifest, seed, context);
  if (!made)
    return bad("{0}", made.status().message());
  return InitialState{std::move(*made), context};
}

//===----------------------------------------------------------------------===//
// Hidden vectors
//===----------------------------------------------------------------------===//

Expected<std::vector<Tensor>> mega::run::loadInputs(const Options &options,
                                                    const Manifest &manifest,
                                                    uint64_t seed) {
  // An output that is fed back needs no further input.
  int64_t count = options.feedOutput ? 1 : options.steps;
  const megalith::TensorDesc &desc = manifest.input;
  std::vector<Tensor> inputs;
  if (options.input.seed) {
    for (int64_t step = 0; step < count; ++step) {
      auto made = megalith::randomToken(seed, "token" + std::to_string(step),
                                        desc.dtype, desc.shape);
      if (!made)
        return bad("{0}", made.status().message());
      inputs.push_back(*made);
    }
    return inputs;
  }
  const std::string &path = options.input.path;
  auto file = megalith::readSafetensors(path);
  if (!file)
    return bad("{0}", file.status().message());
  for (int64_t step = 0; step < count; ++step) {
    Expected<Tensor> tensor =
        take(*file, path, "step" + std::to_string(step) + "/hidden_in",
             desc.dtype, desc.shape);
    if (!tensor)
      return tensor.takeError();
    inputs.push_back(*tensor);
  }
  return inputs;
}
