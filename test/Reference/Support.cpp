// SPDX-License-Identifier: Apache-2.0
/// \file
/// What the reference tests share.

#include "Support.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Parser/Parser.h"

#include <cmath>
#include <random>

using namespace mega;
using namespace mega::test;
using reference::ElementType;
using reference::Shape;

double test::bf16(double value) {
  int exponent;
  double mantissa = std::frexp(value, &exponent);
  return std::ldexp(std::nearbyint(std::ldexp(mantissa, 8)), exponent - 8);
}

Numbers test::bf16(Numbers values) {
  for (double &value : values)
    value = bf16(value);
  return values;
}

Numbers test::random(unsigned seed, size_t count, double low, double high) {
  std::mt19937 generator(seed);
  Numbers values(count);
  for (double &value : values)
    value = bf16(low + (high - low) * (generator() / 4294967296.0));
  return values;
}

//===----------------------------------------------------------------------===//
// Quant
//===----------------------------------------------------------------------===//

Quant Quant::make(unsigned seed, int64_t experts, int64_t inputs,
                  int64_t outputs, int64_t group) {
  Quant quant{experts, inputs, outputs, group, {}, {}, {}};
  std::mt19937 generator(seed);
  for (int64_t i = 0; i < experts * inputs * outputs; ++i)
    quant.codes.push_back(generator() >> 28);
  int64_t groups = experts * inputs / group * outputs;
  for (int64_t i = 0; i < groups; ++i)
    quant.zeros.push_back(generator() >> 28);
  quant.scales = random(seed + 1, groups, 0.002, 0.02);
  return quant;
}

double Quant::at(int64_t expert, int64_t k, int64_t n) const {
  int64_t row = expert * inputs + k;
  int64_t part = (expert * (inputs / group) + k / group) * outputs + n;
  return bf16((codes[row * outputs + n] - zeros[part]) * scales[part]);
}

Numbers Quant::multiply(int64_t expert, const Numbers &x) const {
  Numbers y(outputs, 0.0);
  for (int64_t n = 0; n < outputs; ++n)
    for (int64_t k = 0; k < inputs; ++k)
      y[n] += x[k] * at(expert, k, n);
  return y;
}

//===----------------------------------------------------------------------===//
// BlockTest
//===----------------------------------------------------------------------===//

BlockTest::BlockTest() {
  context.loadDialect<MegaDialect, mlir::arith::ArithDialect,
                      mlir::math::MathDialect>();
  context.getDiagEngine().registerHandler([&](mlir::Diagnostic &diagnostic) {
    diagnostics += diagnostic.str() + "\n";
    return mlir::success();
  });
}

reference::TensorView BlockTest::viewOf(ElementType type, Shape shape,
                                        const Numbers &values) {
  std::vector<float> narrow(values.begin(), values.end());
  storage.push_back(reference::narrow(narrow, type));
  return {type, shape, storage.back().data()};
}

void BlockTest::addBf16(const std::string &name, Shape shape,
                        const Numbers &values) {
  views[name] = viewOf(ElementType::BF16, shape, values);
}

void BlockTest::addF32(const std::string &name, Shape shape,
                       const Numbers &values) {
  views[name] = viewOf(ElementType::F32, shape, values);
}

void BlockTest::addQuant(const std::string &name, const Quant &quant,
                         bool stacked) {
  int64_t pairs = quant.inputs / 2;
  std::vector<uint8_t> bytes(quant.codes.size() / 2);
  for (int64_t r = 0; r < quant.experts * pairs; ++r)
    for (int64_t n = 0; n < quant.outputs; ++n)
      bytes[r * quant.outputs + n] =
          quant.codes[2 * r * quant.outputs + n] +
          16 * quant.codes[(2 * r + 1) * quant.outputs + n];
  auto shape = [&](int64_t rows) {
    Shape dims{rows, quant.outputs};
    if (stacked)
      dims.insert(dims.begin(), quant.experts);
    return dims;
  };
  storage.push_back(std::move(bytes));
  views[name + ".w_q"] = {ElementType::U8, shape(pairs), storage.back().data()};
  Shape groups = shape(quant.inputs / quant.group);
  addBf16(name + ".scales", groups, quant.scales);
  addBf16(name + ".zeros", groups,
          Numbers(quant.zeros.begin(), quant.zeros.end()));
}

void BlockTest::load(const std::string &text) {
  module = mlir::parseSourceString<mlir::ModuleOp>(text, &context);
  ASSERT_TRUE(module) << diagnostics;
  auto block = reference::findBlock(*module);
  ASSERT_TRUE(mlir::succeeded(block)) << diagnostics;
  auto created = reference::Interpreter::create(*block, views);
  ASSERT_TRUE(mlir::succeeded(created)) << diagnostics;
  interpreter = std::move(*created);
}

void BlockTest::setState(const std::string &name, ElementType type, Shape shape,
                         const Numbers &values) {
  ASSERT_TRUE(
      mlir::succeeded(interpreter->setState(name, viewOf(type, shape, values))))
      << diagnostics;
}

Numbers BlockTest::run(const Numbers &hidden) {
  auto out =
      interpreter->step(std::vector<float>(hidden.begin(), hidden.end()));
  EXPECT_TRUE(mlir::succeeded(out)) << diagnostics;
  if (mlir::failed(out))
    return {};
  return Numbers(out->begin(), out->end());
}

Numbers BlockTest::state(const std::string &name) {
  const reference::StateValue *value = interpreter->state(name);
  EXPECT_TRUE(value) << name;
  return value ? Numbers(value->values.begin(), value->values.end())
               : Numbers();
}

//===----------------------------------------------------------------------===//
// Expectations
//===----------------------------------------------------------------------===//

void test::expectNear(const Numbers &found, const Numbers &wanted,
                      double relative) {
  ASSERT_EQ(found.size(), wanted.size());
  double largest = 0;
  for (double value : wanted)
    largest = std::max(largest, std::fabs(value));
  for (size_t i = 0; i < found.size(); ++i)
    EXPECT_NEAR(found[i], wanted[i], relative * largest) << "element " << i;
}

void test::expectBf16Near(const Numbers &found, const Numbers &wanted) {
  ASSERT_EQ(found.size(), wanted.size());
  for (size_t i = 0; i < found.size(); ++i) {
    EXPECT_EQ(found[i], bf16(found[i])) << "element " << i;
    // Half a unit in the last place, and a little for the f32 sums.
    EXPECT_NEAR(found[i], wanted[i], std::fabs(wanted[i]) / 250 + 1e-6)
        << "element " << i;
  }
}

Numbers test::part(const Numbers &values, size_t begin, size_t count) {
  return Numbers(values.begin() + begin, values.begin() + begin + count);
}
