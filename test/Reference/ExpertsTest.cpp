// SPDX-License-Identifier: Apache-2.0
/// \file
/// mega.experts.

#include "Support.h"

#include <cmath>

using namespace mega::test;

namespace {

constexpr int kExperts = 4, kIn = 64, kInner = 96, kOut = 32;

/// Three stacks that belong together.
struct Triple {
  Quant gate, up, down;

  Triple(unsigned seed, int experts)
      : gate(Quant::make(seed, experts, kIn, kInner, 32)),
        up(Quant::make(seed + 10, experts, kIn, kInner, 32)),
        down(Quant::make(seed + 20, experts, kInner, kOut, 32)) {}

  /// One expert's gated MLP, with SiLU.
  Numbers apply(int expert, const Numbers &x) const {
    Numbers g = gate.multiply(expert, x), u = up.multiply(expert, x), hidden;
    for (int i = 0; i < kInner; ++i)
      hidden.push_back(g[i] / (1 + std::exp(-g[i])) * u[i]);
    return down.multiply(expert, hidden);
  }
};

class ExpertsTest : public BlockTest {
protected:
  void add(const std::string &prefix, const Triple &triple) {
    addQuant(prefix + "gate", triple.gate, true);
    addQuant(prefix + "up", triple.up, true);
    addQuant(prefix + "down", triple.down, true);
  }

  /// A block of router logits (the first four elements) and the experts on
  /// the next 64.
  void loadExperts(const std::string &shared) {
    load(R"(
      mega.weight @gate : !mega.quant<4x64x96xi4, group = 32, scale = bf16, zero = bf16>
      mega.weight @up : !mega.quant<4x64x96xi4, group = 32, scale = bf16, zero = bf16>
      mega.weight @down : !mega.quant<4x96x32xi4, group = 32, scale = bf16, zero = bf16>
      mega.weight @s_gate : !mega.quant<2x64x96xi4, group = 32, scale = bf16, zero = bf16>
      mega.weight @s_up : !mega.quant<2x64x96xi4, group = 32, scale = bf16, zero = bf16>
      mega.weight @s_down : !mega.quant<2x96x32xi4, group = 32, scale = bf16, zero = bf16>
      mega.block @b(%x: tensor<68xbf16>) -> tensor<32xf32> {
        %lg = mega.slice %x from 0 : tensor<68xbf16> -> tensor<4xbf16>
        %n = mega.slice %x from 4 : tensor<68xbf16> -> tensor<64xbf16>
        %ids, %w = mega.router %lg softmax scale(3.0)
            : tensor<4xbf16> -> tensor<2xi32>, tensor<2xf32>
        %y = mega.experts(%n, %ids, %w) gate @gate up @up down @down )" +
         shared + R"(
            : tensor<64xbf16>, tensor<2xi32>, tensor<2xf32> -> tensor<32xf32> {
        ^bb0(%g: f32, %u: f32):
          %one = arith.constant 1.0 : f32
          %neg = arith.negf %g : f32
          %exp = math.exp %neg : f32
          %den = arith.addf %exp, %one : f32
          %silu = arith.divf %g, %den : f32
          %h = arith.mulf %silu, %u : f32
          mega.yield %h
        }
        mega.return %y : tensor<32xf32>
      })");
  }

  /// The routed part for logits that choose experts 2, then 0.
  Numbers routedSum(const Numbers &x) const {
    double total = 0;
    for (double logit : logits)
      total += std::exp(logit);
    Numbers sum(kOut, 0.0);
    for (int expert : {2, 0}) {
      Numbers y = routed.apply(expert, x);
      for (int n = 0; n < kOut; ++n)
        sum[n] += 3 * std::exp(logits[expert]) / total * y[n];
    }
    return sum;
  }

  Numbers hidden(const Numbers &x) const {
    Numbers all = logits;
    all.insert(all.end(), x.begin(), x.end());
    return all;
  }

  void SetUp() override {
    add("", routed);
    add("s_", shared);
  }

  const Numbers logits = {0.5, -1, 1.5, -2};
  const Numbers x = random(61, kIn, -2, 2);
  const Triple routed{62, kExperts}, shared{92, 2};
};

TEST_F(ExpertsTest, Routed) {
  loadExperts("");
  expectNear(run(hidden(x)), routedSum(x), 3e-6);
}

TEST_F(ExpertsTest, SharedHaveWeightOne) {
  loadExperts("shared @s_gate, @s_up, @s_down");
  Numbers wanted = routedSum(x);
  for (int expert : {0, 1}) {
    Numbers y = shared.apply(expert, x);
    for (int n = 0; n < kOut; ++n)
      wanted[n] += y[n];
  }
  expectNear(run(hidden(x)), wanted, 3e-6);
}

} // namespace
