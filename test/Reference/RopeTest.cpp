// SPDX-License-Identifier: Apache-2.0
/// \file
/// mega.rope.

#include "Support.h"

#include <cmath>

using namespace mega::test;

namespace {

class RopeTest : public BlockTest {
protected:
  void loadRope(const std::string &attributes) {
    load(R"(
      mega.block @b(%x: tensor<24xf32>) -> tensor<24xf32> {
        %pos = mega.position
        %h = mega.reshape %x : tensor<24xf32> -> tensor<2x12xf32>
        %r = mega.rope %h, %pos )" +
         attributes + R"( theta(100.0)
            : tensor<2x12xf32> -> tensor<2x12xf32>
        %y = mega.reshape %r : tensor<2x12xf32> -> tensor<24xf32>
        mega.return %y : tensor<24xf32>
      })");
  }
  /// Rotates pair i of `size` (elements first, second of each row of 12).
  static void rotate(Numbers &x, int position, int i, int size, int first,
                     int second) {
    double angle = position * std::pow(100.0, -2.0 * i / size);
    for (int row = 0; row < 24; row += 12) {
      double a = x[row + first], b = x[row + second];
      x[row + first] = a * std::cos(angle) - b * std::sin(angle);
      x[row + second] = a * std::sin(angle) + b * std::cos(angle);
    }
  }
};

TEST_F(RopeTest, InterleavedPart) {
  loadRope("interleaved range(4, 8)");
  for (int position : {0, 1, 7, 1000}) {
    ASSERT_TRUE(mlir::succeeded(interpreter->setPosition(position)));
    Numbers x = random(41 + position, 24, -1, 1), wanted = x;
    for (int i = 0; i < 4; ++i)
      rotate(wanted, position, i, 8, 4 + 2 * i, 4 + 2 * i + 1);
    // An f32 angle near 1000 is good to 3e-5.
    expectNear(run(x), wanted, position < 100 ? 1e-6 : 1e-4);
  }
}

TEST_F(RopeTest, HalfWhole) {
  loadRope("half range(0, 12)");
  ASSERT_TRUE(mlir::succeeded(interpreter->setPosition(5)));
  Numbers x = random(45, 24, -1, 1), wanted = x;
  for (int i = 0; i < 6; ++i)
    rotate(wanted, 5, i, 12, i, i + 6);
  expectNear(run(x), wanted, 1e-6);
}

TEST_F(RopeTest, HalfPart) {
  loadRope("half range(2, 6)");
  ASSERT_TRUE(mlir::succeeded(interpreter->setPosition(3)));
  Numbers x = random(46, 24, -1, 1), wanted = x;
  for (int i = 0; i < 3; ++i)
    rotate(wanted, 3, i, 6, 2 + i, 2 + i + 3);
  expectNear(run(x), wanted, 1e-6);
}

TEST_F(RopeTest, NoneRotatesNothing) {
  loadRope("none range(0, 12)");
  ASSERT_TRUE(mlir::succeeded(interpreter->setPosition(9)));
  Numbers x = random(47, 24, -1, 1);
  EXPECT_EQ(run(x), x);
}

TEST_F(RopeTest, PositionAdvances) {
  loadRope("interleaved range(0, 2)");
  for (int position = 0; position < 4; ++position) {
    EXPECT_EQ(interpreter->position(), position);
    Numbers x = random(48, 24, -1, 1), wanted = x;
    rotate(wanted, position, 0, 2, 0, 1);
    expectNear(run(x), wanted, 1e-6);
  }
}

} // namespace
