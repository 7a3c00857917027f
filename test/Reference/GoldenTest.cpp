// SPDX-License-Identifier: Apache-2.0
/// \file
/// Whole blocks against golden vectors that another implementation computed:
/// three steps from a given state, each with a fresh hidden vector.

#include "mega/Reference/Interpreter.h"
#include "mega/runtime/Safetensors.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Parser/Parser.h"
#include "gtest/gtest.h"

#include <cmath>

using namespace mega;
using reference::ElementType;

namespace {

/// A description and its golden vectors, relative to the source tree.
struct Golden {
  const char *block, *tensors;
};

class GoldenTest : public ::testing::TestWithParam<Golden> {};

reference::TensorView viewOf(const megalith::Tensor &tensor) {
  ElementType type = ElementType::F32;
  switch (tensor.dtype) {
  case megalith::DType::U8:
    type = ElementType::U8;
    break;
  case megalith::DType::I32:
    type = ElementType::I32;
    break;
  case megalith::DType::BF16:
    type = ElementType::BF16;
    break;
  default:
    break;
  }
  return {type, reference::Shape(tensor.shape.begin(), tensor.shape.end()),
          tensor.data};
}

std::vector<float> widened(const megalith::Tensor &tensor) {
  reference::TensorView view = viewOf(tensor);
  std::vector<float> values(reference::numElements(view.shape));
  reference::widen(view, 0, values.size(), values.data());
  return values;
}

double relativeError(llvm::ArrayRef<float> found,
                     llvm::ArrayRef<float> wanted) {
  EXPECT_EQ(found.size(), wanted.size());
  double error = 0, norm = 0;
  for (auto [a, b] : llvm::zip(found, wanted)) {
    error += (double(a) - b) * (double(a) - b);
    norm += double(b) * b;
  }
  return std::sqrt(error / norm);
}

/// The golden choices of one step, a row per probe, against the probes.
void expectExperts(llvm::ArrayRef<reference::RouterProbe> probes,
                   const megalith::Tensor &golden) {
  ASSERT_EQ(static_cast<int64_t>(probes.size()), golden.shape[0]);
  size_t count = golden.shape[1];
  for (auto [row, probe] : llvm::enumerate(probes)) {
    std::vector<int32_t> wanted(count);
    std::memcpy(wanted.data(), golden.data + row * count * sizeof(int32_t),
                count * sizeof(int32_t));
    EXPECT_EQ(probe.ids, wanted) << probe.name;
  }
}

TEST_P(GoldenTest, MatchesEveryOutputAndState) {
  std::string root = MEGA_SOURCE_DIR "/";
  auto file = megalith::readSafetensors(root + GetParam().tensors);
  ASSERT_TRUE(file) << file.status().message();
  mlir::MLIRContext context;
  context.loadDialect<MegaDialect, mlir::arith::ArithDialect,
                      mlir::math::MathDialect>();
  auto module =
      mlir::parseSourceFile<mlir::ModuleOp>(root + GetParam().block, &context);
  ASSERT_TRUE(module);

  reference::TensorViews weights;
  for (auto &[name, tensor] : file->tensors)
    if (llvm::StringRef rest(name); rest.consume_front("weights/"))
      weights[rest] = viewOf(tensor);
  auto created =
      reference::Interpreter::create(*reference::findBlock(*module), weights);
  ASSERT_TRUE(mlir::succeeded(created));
  reference::Interpreter &interpreter = **created;
  for (auto &[name, tensor] : file->tensors)
    if (llvm::StringRef rest(name); rest.consume_front("state_in/")) {
      ASSERT_TRUE(mlir::succeeded(interpreter.setState(rest, viewOf(tensor))));
    }
  ASSERT_TRUE(mlir::succeeded(
      interpreter.setPosition(std::stoll(file->metadata.at("context")))));

  int steps = std::stoi(file->metadata.at("steps"));
  for (int step = 0; step < steps; ++step) {
    std::string prefix = "step" + std::to_string(step) + "/";
    SCOPED_TRACE(prefix);
    auto out =
        interpreter.step(widened(file->tensors.at(prefix + "hidden_in")));
    ASSERT_TRUE(mlir::succeeded(out));
    double error =
        relativeError(*out, widened(file->tensors.at(prefix + "hidden_out")));
    EXPECT_LE(error, 1e-3);
    RecordProperty("step" + std::to_string(step), std::to_string(error));
    expectExperts(interpreter.probes(), file->tensors.at(prefix + "experts"));
  }
  for (auto &[name, tensor] : file->tensors)
    if (llvm::StringRef rest(name); rest.consume_front("state_out/")) {
      const reference::StateValue *state = interpreter.state(rest);
      ASSERT_TRUE(state) << name;
      EXPECT_EQ(state->shape, viewOf(tensor).shape) << name;
      EXPECT_LE(relativeError(state->values, widened(tensor)), 1e-3) << name;
    }
}

INSTANTIATE_TEST_SUITE_P(
    Motifs, GoldenTest,
    ::testing::Values(Golden{"examples/kimi_linear_motif_small.mlir",
                             "test/golden/motif_small.safetensors"},
                      Golden{"test/golden/motif_km.mlir",
                             "test/golden/motif_km.safetensors"}));

} // namespace
