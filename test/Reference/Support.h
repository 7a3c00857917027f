// SPDX-License-Identifier: Apache-2.0
/// \file
/// What the reference tests share: a block under test from text, weights and
/// states from numbers, and double-precision arithmetic that is written apart
/// from the interpreter's.

#ifndef MEGA_TEST_REFERENCE_SUPPORT_H
#define MEGA_TEST_REFERENCE_SUPPORT_H

#include "mega/Reference/Interpreter.h"

#include "gtest/gtest.h"

#include <cstdint>
#include <list>
#include <string>
#include <vector>

namespace mega::test {

using Numbers = std::vector<double>;

/// Rounds to eight significant bits, ties to even.
double bf16(double value);

/// The same for every element.
Numbers bf16(Numbers values);

/// `count` bf16 numbers spread evenly over [low, high); repeatable.
Numbers random(unsigned seed, size_t count, double low, double high);

/// A quantised weight with random codes, zeros and scales.
struct Quant {
  int64_t experts, inputs, outputs, group;
  /// One entry per element; experts first, then inputs.
  std::vector<int> codes;
  /// One entry per group and output.
  std::vector<int> zeros;
  Numbers scales;

  static Quant make(unsigned seed, int64_t experts, int64_t inputs,
                    int64_t outputs, int64_t group);
  /// The dequantised weight.
  double at(int64_t expert, int64_t k, int64_t n) const;
  /// `x W` of one expert.
  Numbers multiply(int64_t expert, const Numbers &x) const;
};

/// A block under test.
class BlockTest : public ::testing::Test {
protected:
  BlockTest();

  void addBf16(const std::string &name, reference::Shape shape,
               const Numbers &values);
  void addF32(const std::string &name, reference::Shape shape,
              const Numbers &values);
  void addQuant(const std::string &name, const Quant &quant, bool stacked);

  /// Parses the text and makes the interpreter from the added weights.
  void load(const std::string &text);
  void setState(const std::string &name, reference::ElementType type,
                reference::Shape shape, const Numbers &values);
  /// One step.
  Numbers run(const Numbers &hidden);
  Numbers state(const std::string &name);

  /// All diagnostics so far.
  std::string diagnostics;
  mlir::MLIRContext context;
  mlir::OwningOpRef<mlir::ModuleOp> module;
  reference::TensorViews views;
  std::unique_ptr<reference::Interpreter> interpreter;

private:
  reference::TensorView viewOf(reference::ElementType type,
                               reference::Shape shape, const Numbers &values);
  std::list<std::vector<uint8_t>> storage;
};

/// Expects equality up to `relative` of the largest expected magnitude.
void expectNear(const Numbers &found, const Numbers &wanted, double relative);

/// Expects bf16 numbers, each within one bf16 rounding of the wanted number.
void expectBf16Near(const Numbers &found, const Numbers &wanted);

/// Elements [begin, begin + count).
Numbers part(const Numbers &values, size_t begin, size_t count);

} // namespace mega::test

#endif // MEGA_TEST_REFERENCE_SUPPORT_H
