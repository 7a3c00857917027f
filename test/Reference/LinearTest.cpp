// SPDX-License-Identifier: Apache-2.0
/// \file
/// mega.linear.

#include "Support.h"

using namespace mega::test;

namespace {

/// Quantised weights, by group size.
class LinearGroupTest : public BlockTest,
                        public ::testing::WithParamInterface<int> {};

TEST_P(LinearGroupTest, Quantised) {
  // More columns than one work item takes, and not a multiple of it.
  Quant quant = Quant::make(GetParam(), 1, 256, 272, GetParam());
  Numbers x = random(11, 256, -1, 1);
  addQuant("w", quant, false);
  std::string group = std::to_string(GetParam());
  load("mega.weight @w : !mega.quant<256x272xi4, group = " + group + R"(,
         scale = bf16, zero = bf16>
    mega.block @b(%x: tensor<256xbf16>) -> tensor<272xf32> {
      %y = mega.linear %x, @w : tensor<256xbf16> -> tensor<272xf32>
      mega.return %y : tensor<272xf32>
    })");
  expectNear(run(x), quant.multiply(0, x), 2e-6);
}

INSTANTIATE_TEST_SUITE_P(Groups, LinearGroupTest,
                         ::testing::Values(32, 64, 128, 256));

class LinearTest : public BlockTest {};

TEST_F(LinearTest, RoundsResult) {
  Quant quant = Quant::make(3, 1, 128, 48, 128);
  Numbers x = random(12, 128, -1, 1);
  addQuant("w", quant, false);
  load(R"(
    mega.weight @w : !mega.quant<128x48xi4, group = 128, scale = bf16,
                                 zero = bf16>
    mega.block @b(%x: tensor<128xbf16>) -> tensor<48xbf16> {
      %y = mega.linear %x, @w : tensor<128xbf16> -> tensor<48xbf16>
      mega.return %y : tensor<48xbf16>
    })");
  expectBf16Near(run(x), quant.multiply(0, x));
}

TEST_F(LinearTest, EvenInputIsTheLowNibble) {
  Quant quant = Quant::make(4, 1, 32, 16, 32);
  for (int &code : quant.codes)
    code = 0;
  for (int &zero : quant.zeros)
    zero = 0;
  for (double &scale : quant.scales)
    scale = 1;
  for (int n = 0; n < 16; ++n) {
    quant.codes[0 * 16 + n] = 5;
    quant.codes[1 * 16 + n] = 11;
  }
  addQuant("w", quant, false);
  load(R"(
    mega.weight @w : !mega.quant<32x16xi4, group = 32, scale = bf16,
                                 zero = bf16>
    mega.block @b(%x: tensor<32xbf16>) -> tensor<16xf32> {
      %y = mega.linear %x, @w : tensor<32xbf16> -> tensor<16xf32>
      mega.return %y : tensor<16xf32>
    })");
  Numbers x(32, 0.0);
  x[0] = 1;
  EXPECT_EQ(run(x), Numbers(16, 5.0));
  x[0] = 0, x[1] = 1;
  EXPECT_EQ(run(x), Numbers(16, 11.0));
}

TEST_F(LinearTest, Dense) {
  Numbers w = random(13, 24 * 100, -1, 1), x = random(14, 100, -1, 1);
  addBf16("w", {24, 100}, w);
  load(R"(
    mega.weight @w : tensor<24x100xbf16>
    mega.block @b(%x: tensor<100xf32>) -> tensor<24xf32> {
      %y = mega.linear %x, @w : tensor<100xf32> -> tensor<24xf32>
      mega.return %y : tensor<24xf32>
    })");
  Numbers wanted(24, 0.0);
  for (int n = 0; n < 24; ++n)
    for (int k = 0; k < 100; ++k)
      wanted[n] += x[k] * w[n * 100 + k];
  expectNear(run(x), wanted, 1e-6);
}

} // namespace
