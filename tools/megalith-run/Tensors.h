// SPDX-License-Identifier: Apache-2.0
/// \file
/// The numbers of a run: weights, states and hidden vectors from files or
/// generators, checked against what the block wants.

#ifndef MEGA_TOOLS_RUN_TENSORS_H
#define MEGA_TOOLS_RUN_TENSORS_H

#include "Options.h"

#include "mega/Reference/Tensor.h"
#include "mega/runtime/Manifest.h"
#include "mega/runtime/TensorMap.h"

namespace mega::run {

/// Between the compiler's and the runtime's element types.
megalith::DType dtypeOf(reference::ElementType type);
reference::ElementType elementTypeOf(megalith::DType dtype);

/// The same bytes as the interpreter sees them.
reference::TensorView viewOf(const megalith::Tensor &tensor);

/// The elements of a bf16 or f32 tensor.
std::vector<float> valuesOf(const megalith::Tensor &tensor);

/// A tensor with its own bytes, rounded to `dtype`.
megalith::Tensor tensorOf(const std::vector<float> &values,
                          megalith::DType dtype, std::vector<int64_t> shape);

/// Every weight tensor of the manifest, under its checkpoint name.
llvm::Expected<megalith::TensorMap>
loadWeights(const Options &options, const megalith::Manifest &manifest);

/// States before the first step, and how many tokens they stand for.
struct InitialState {
  megalith::TensorMap states;
  int64_t context = 0;
};

/// For a file, `context` -1 means as many rows as the file has; otherwise the
/// file must have that many.
llvm::Expected<InitialState> loadStates(const Options &options,
                                        const megalith::Manifest &manifest,
                                        int64_t context, uint64_t seed);

/// One hidden vector a step.
llvm::Expected<std::vector<megalith::Tensor>>
loadInputs(const Options &options, const megalith::Manifest &manifest,
           uint64_t seed);

} // namespace mega::run

#endif // MEGA_TOOLS_RUN_TENSORS_H
