// SPDX-License-Identifier: Apache-2.0
/// \file
/// mega.map.

#include "Support.h"

#include <cmath>

using namespace mega::test;

namespace {

class MapTest : public BlockTest {
protected:
  /// A block of one map of x with itself, f32 in, `type` out.
  void loadMap(const std::string &type, const std::string &body, size_t count) {
    std::string in = "tensor<" + std::to_string(count) + "xf32>";
    std::string out = "tensor<" + std::to_string(count) + "x" + type + ">";
    load("mega.block @b(%x: " + in + ") -> " + out +
         " {\n%y = mega.map(%a = %x)"
         " : (" +
         in + ") -> " + out + " {\n" + body + "\n}\nmega.return %y : " + out +
         "\n}");
  }
};

TEST_F(MapTest, RoundsOnceToNearestEven) {
  loadMap("bf16", "%s = arith.addf %a, %a : f32\nmega.yield %s", 6);
  double ulp = std::ldexp(1.0, -7);
  // Doubles of the input: ties at odd and even neighbours, and beside ties.
  Numbers wanted = {1.0, 1.0 + 2 * ulp, 1.0 + ulp, 1.0, -1.0 - 2 * ulp, 3.0};
  Numbers sums = {1.0 + ulp / 2,        1.0 + 1.5 * ulp,  1.0 + ulp / 2 + 1e-6,
                  1.0 + ulp / 2 - 1e-6, -1.0 - 1.5 * ulp, 3.0};
  for (double &sum : sums)
    sum /= 2;
  EXPECT_EQ(run(sums), wanted);
}

TEST_F(MapTest, NothingIsRoundedInside) {
  // In bf16 the small addend would vanish.
  loadMap("bf16", R"(
    %big = arith.constant 256.0 : f32
    %s = arith.addf %a, %big : f32
    %d = arith.subf %s, %big : f32
    mega.yield %d)",
          1);
  EXPECT_EQ(run({0.25}), Numbers{0.25});
}

TEST_F(MapTest, WidensBf16Operands) {
  load(R"(
    mega.block @b(%x: tensor<2xbf16>) -> tensor<2xf32> {
      %y = mega.map(%a = %x, %b = %x)
          : (tensor<2xbf16>, tensor<2xbf16>) -> tensor<2xf32> {
        %p = arith.mulf %a, %b : f32
        mega.yield %p
      }
      mega.return %y : tensor<2xf32>
    })");
  double value = 1 + std::ldexp(1.0, -7);
  EXPECT_EQ(run({value, -3}), (Numbers{value * value, 9}));
  EXPECT_EQ(run({value + 1e-4, 0}), (Numbers{value * value, 0}))
      << "the block's argument is rounded to its type";
}

TEST_F(MapTest, EveryScalarOp) {
  struct Case {
    const char *body;
    double (*wanted)(double);
  } cases[] = {
      {"%r = arith.addf %a, %c : f32", [](double a) { return a + 0.75; }},
      {"%r = arith.subf %a, %c : f32", [](double a) { return a - 0.75; }},
      {"%r = arith.mulf %a, %c : f32", [](double a) { return a * 0.75; }},
      {"%r = arith.divf %a, %c : f32", [](double a) { return a / 0.75; }},
      {"%r = arith.negf %a : f32", [](double a) { return -a; }},
      {"%r = arith.maximumf %a, %c : f32",
       [](double a) { return a > 0.75 ? a : 0.75; }},
      {"%r = arith.minimumf %a, %c : f32",
       [](double a) { return a < 0.75 ? a : 0.75; }},
      {"%r = math.exp %a : f32", [](double a) { return std::exp(a); }},
      {"%r = math.log1p %a : f32", [](double a) { return std::log1p(a); }},
      {"%r = math.tanh %a : f32", [](double a) { return std::tanh(a); }},
      {"%r = math.sqrt %a : f32", [](double a) { return std::sqrt(a); }},
      {"%r = math.rsqrt %a : f32", [](double a) { return 1 / std::sqrt(a); }},
      {"%r = math.absf %a : f32", [](double a) { return std::fabs(a); }},
  };
  for (const Case &test : cases) {
    SCOPED_TRACE(test.body);
    loadMap("f32",
            std::string("%c = arith.constant 0.75 : f32\n") + test.body +
                "\nmega.yield %r",
            3);
    Numbers x = {0.5, 1.25, 6.5}, wanted;
    for (double value : x)
      wanted.push_back(test.wanted(value));
    expectNear(run(x), wanted, 1e-7);
  }
}

TEST_F(MapTest, MaximumPropagatesNan) {
  loadMap("f32", R"(
    %c = arith.constant 0.75 : f32
    %r = arith.maximumf %a, %c : f32
    mega.yield %r)",
          1);
  EXPECT_TRUE(std::isnan(run({NAN})[0]));
}

} // namespace
