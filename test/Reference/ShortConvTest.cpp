// SPDX-License-Identifier: Apache-2.0
/// \file
/// mega.short_conv.

#include "Support.h"

using namespace mega::test;
using mega::reference::ElementType;

namespace {

class ShortConvTest : public BlockTest {};

TEST_F(ShortConvTest, StackedWeightAndStateShift) {
  constexpr int kChannels = 20, kTaps = 4;
  Numbers w = random(21, 3 * kChannels * kTaps, -1, 1);
  Numbers history = random(22, (kTaps - 1) * kChannels, -1, 1);
  addBf16("w", {3, kChannels, kTaps}, w);
  load(R"(
    mega.weight @w : tensor<3x20x4xbf16>
    mega.state @s : tensor<3x20xbf16>
    mega.block @b(%x: tensor<20xbf16>) -> tensor<20xf32> {
      %y = mega.short_conv %x, @w[2], @s : tensor<20xbf16> -> tensor<20xf32>
      mega.return %y : tensor<20xf32>
    })");
  setState("s", ElementType::BF16, {3, kChannels}, history);
  for (unsigned step = 0; step < 5; ++step) {
    Numbers x = random(23 + step, kChannels, -1, 1), wanted;
    history.insert(history.end(), x.begin(), x.end());
    for (int c = 0; c < kChannels; ++c) {
      double total = 0;
      for (int t = 0; t < kTaps; ++t)
        total +=
            history[t * kChannels + c] * w[(2 * kChannels + c) * kTaps + t];
      wanted.push_back(total);
    }
    history.erase(history.begin(), history.begin() + kChannels);
    expectNear(run(x), wanted, 1e-6);
    EXPECT_EQ(state("s"), history) << "state rows are exact copies";
  }
}

TEST_F(ShortConvTest, PlainWeightOfTwoTaps) {
  addF32("w", {2, 2}, {1, 10, 2, 20});
  load(R"(
    mega.weight @w : tensor<2x2xf32>
    mega.state @s : tensor<1x2xf32>
    mega.block @b(%x: tensor<2xf32>) -> tensor<2xf32> {
      %y = mega.short_conv %x, @w, @s : tensor<2xf32> -> tensor<2xf32>
      mega.return %y : tensor<2xf32>
    })");
  EXPECT_EQ(run({1, 1}), (Numbers{10, 20})) << "state starts at zero";
  EXPECT_EQ(run({3, 4}), (Numbers{31, 82}));
}

} // namespace
