// SPDX-License-Identifier: Apache-2.0
/// \file
/// mega.rms_norm.

#include "Support.h"

#include <cmath>

using namespace mega::test;

namespace {

class RmsNormTest : public BlockTest {};

/// The norm of each row.
Numbers normalise(const Numbers &x, const Numbers &gain, double eps) {
  Numbers y;
  for (size_t begin = 0; begin < x.size(); begin += gain.size()) {
    double squares = 0;
    for (size_t i = 0; i < gain.size(); ++i)
      squares += x[begin + i] * x[begin + i];
    double root = std::sqrt(squares / gain.size() + eps);
    for (size_t i = 0; i < gain.size(); ++i)
      y.push_back(x[begin + i] / root * gain[i]);
  }
  return y;
}

TEST_F(RmsNormTest, Vector) {
  Numbers x = random(1, 72, -2, 2), w = random(2, 72, 0.5, 1.5);
  addBf16("w", {72}, w);
  load(R"(
    mega.weight @w : tensor<72xbf16>
    mega.block @b(%x: tensor<72xbf16>) -> tensor<72xf32> {
      %n = mega.rms_norm %x, @w eps(0.5) : tensor<72xbf16> -> tensor<72xf32>
      mega.return %n : tensor<72xf32>
    })");
  expectNear(run(x), normalise(x, w, 0.5), 1e-6);
}

TEST_F(RmsNormTest, RoundsOnce) {
  Numbers x = random(3, 72, -2, 2), w = random(4, 72, 0.5, 1.5);
  addBf16("w", {72}, w);
  load(R"(
    mega.weight @w : tensor<72xbf16>
    mega.block @b(%x: tensor<72xbf16>) -> tensor<72xbf16> {
      %n = mega.rms_norm %x, @w eps(1.0e-6) : tensor<72xbf16> -> tensor<72xbf16>
      mega.return %n : tensor<72xbf16>
    })");
  Numbers found = run(x), wanted = bf16(normalise(x, w, 1e-6));
  int different = 0;
  for (size_t i = 0; i < found.size(); ++i)
    different += found[i] != wanted[i];
  EXPECT_LE(different, 1) << "only a near-tie may round the other way";
  expectBf16Near(found, wanted);
}

TEST_F(RmsNormTest, UnitOffset) {
  Numbers x = random(5, 40, -1, 1), w = random(6, 40, -0.5, 0.5);
  addF32("w", {40}, w);
  load(R"(
    mega.weight @w : tensor<40xf32>
    mega.block @b(%x: tensor<40xf32>) -> tensor<40xf32> {
      %n = mega.rms_norm %x, @w eps(1.0e-5) unit_offset
          : tensor<40xf32> -> tensor<40xf32>
      mega.return %n : tensor<40xf32>
    })");
  Numbers gain;
  for (double value : w)
    gain.push_back(1 + value);
  expectNear(run(x), normalise(x, gain, 1e-5), 1e-6);
}

TEST_F(RmsNormTest, RowsOfRankTwo) {
  Numbers x = random(7, 96, -1, 1), w = random(8, 32, 0.5, 2);
  addBf16("w", {32}, w);
  load(R"(
    mega.weight @w : tensor<32xbf16>
    mega.block @b(%x: tensor<96xbf16>) -> tensor<96xf32> {
      %r = mega.reshape %x : tensor<96xbf16> -> tensor<3x32xbf16>
      %n = mega.rms_norm %r, @w eps(1.0e-6)
          : tensor<3x32xbf16> -> tensor<3x32xf32>
      %y = mega.reshape %n : tensor<3x32xf32> -> tensor<96xf32>
      mega.return %y : tensor<96xf32>
    })");
  expectNear(run(x), normalise(x, w, 1e-6), 1e-6);
}

} // namespace
