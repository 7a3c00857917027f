// SPDX-License-Identifier: Apache-2.0
/// \file
/// mega.cache_append and mega.latent_attention.

#include "Support.h"

#include <cmath>

using namespace mega::test;
using mega::reference::ElementType;

namespace {

class CacheAppendTest : public BlockTest {};

TEST_F(CacheAppendTest, AddsTheNewRowLast) {
  load(R"(
    mega.state @c : tensor<?x2x2xbf16>
    mega.block @b(%x: tensor<4xbf16>) -> tensor<4xbf16> {
      %pos = mega.position
      %r = mega.reshape %x : tensor<4xbf16> -> tensor<2x2xbf16>
      mega.cache_append %r, %pos, @c : tensor<2x2xbf16>
      mega.return %x : tensor<4xbf16>
    })");
  EXPECT_EQ(run({1, 2, 3, 4}), (Numbers{1, 2, 3, 4}));
  run({5, 6, 7, 8});
  EXPECT_EQ(state("c"), (Numbers{1, 2, 3, 4, 5, 6, 7, 8}));
  EXPECT_EQ(interpreter->state("c")->shape, (mega::reference::Shape{2, 2, 2}));
  EXPECT_EQ(interpreter->position(), 2);
}

TEST_F(CacheAppendTest, RowsMustMatchThePosition) {
  load(R"(
    mega.state @c : tensor<?x4xbf16>
    mega.block @b(%x: tensor<4xbf16>) -> tensor<4xbf16> {
      %pos = mega.position
      mega.cache_append %x, %pos, @c : tensor<4xbf16>
      mega.return %x : tensor<4xbf16>
    })");
  setState("c", ElementType::BF16, {2, 4}, Numbers(8, 1.0));
  ASSERT_TRUE(mlir::succeeded(interpreter->setPosition(3)));
  EXPECT_TRUE(mlir::failed(interpreter->step({1, 2, 3, 4})));
  EXPECT_NE(diagnostics.find("holds 2 rows before a step, expected the "
                             "position 3"),
            std::string::npos)
      << diagnostics;
}

/// Latent attention with `rows` cached rows before the step.
class LatentAttentionTest : public BlockTest,
                            public ::testing::WithParamInterface<int> {};

TEST_P(LatentAttentionTest, Unabsorbed) {
  // Sizes that divide neither panels nor row blocks evenly.
  constexpr int kHeads = 2, kKeys = 10, kRotary = 4, kValues = 30,
                kLatent = 256;
  constexpr int kWidth = kKeys + kValues;
  constexpr double kScale = 0.5;
  const int rows = GetParam();
  Quant quant = Quant::make(51, 1, kLatent, kHeads * kWidth, 32);
  addQuant("w", quant, false);
  load(R"(
    mega.weight @w : !mega.quant<256x80xi4, group = 32, scale = bf16,
                                 zero = bf16>
    mega.state @c : tensor<?x256xbf16>
    mega.state @r : tensor<?x4xbf16>
    mega.block @b(%x: tensor<288xbf16>) -> tensor<60xf32> {
      %pos = mega.position
      %q = mega.slice %x from 0 : tensor<288xbf16> -> tensor<28xbf16>
      %qh = mega.reshape %q : tensor<28xbf16> -> tensor<2x14xbf16>
      %c = mega.slice %x from 28 : tensor<288xbf16> -> tensor<256xbf16>
      %r = mega.slice %x from 284 : tensor<288xbf16> -> tensor<4xbf16>
      mega.cache_append %c, %pos, @c : tensor<256xbf16>
      mega.cache_append %r, %pos, @r : tensor<4xbf16>
      %o = mega.latent_attention %qh, %pos, @c, @r, @w scale(0.5) absorb
          : tensor<2x14xbf16> -> tensor<2x30xf32>
      %y = mega.reshape %o : tensor<2x30xf32> -> tensor<60xf32>
      mega.return %y : tensor<60xf32>
    })");
  Numbers latent = random(52, rows * kLatent, -0.5, 0.5);
  Numbers rope = random(53, rows * kRotary, -1, 1);
  setState("c", ElementType::BF16, {rows, kLatent}, latent);
  setState("r", ElementType::BF16, {rows, kRotary}, rope);
  ASSERT_TRUE(mlir::succeeded(interpreter->setPosition(rows)));
  Numbers hidden = random(54, 288, -1, 1);
  Numbers found = run(hidden);

  Numbers newLatent = part(hidden, 28, kLatent);
  Numbers newRope = part(hidden, 284, kRotary);
  latent.insert(latent.end(), newLatent.begin(), newLatent.end());
  rope.insert(rope.end(), newRope.begin(), newRope.end());
  Numbers wanted(kHeads * kValues, 0.0);
  for (int h = 0; h < kHeads; ++h) {
    const double *q = hidden.data() + h * (kKeys + kRotary);
    Numbers weights, values;
    double total = 0;
    for (int l = 0; l <= rows; ++l) {
      Numbers row = bf16(quant.multiply(0, part(latent, l * kLatent, kLatent)));
      const double *kv = row.data() + h * kWidth;
      double score = 0;
      for (int j = 0; j < kKeys; ++j)
        score += q[j] * kv[j];
      for (int j = 0; j < kRotary; ++j)
        score += q[kKeys + j] * rope[l * kRotary + j];
      weights.push_back(std::exp(score * kScale));
      total += weights.back();
      values.insert(values.end(), kv + kKeys, kv + kWidth);
    }
    for (int l = 0; l <= rows; ++l)
      for (int j = 0; j < kValues; ++j)
        wanted[h * kValues + j] += weights[l] / total * values[l * kValues + j];
  }
  // A sum within f32 rounding of a bf16 tie may round the other way in kv.
  expectNear(found, wanted, rows < 4 ? 4e-3 : 1e-3);
}

INSTANTIATE_TEST_SUITE_P(Rows, LatentAttentionTest,
                         ::testing::Values(0, 1, 62, 63, 64, 150));

} // namespace
