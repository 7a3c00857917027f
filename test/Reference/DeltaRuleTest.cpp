// SPDX-License-Identifier: Apache-2.0
/// \file
/// mega.delta_rule.

#include "Support.h"

using namespace mega::test;
using mega::reference::ElementType;

namespace {

constexpr int kHeads = 3, kKeys = 8, kValues = 16;

class DeltaRuleTest : public BlockTest {
protected:
  /// Runs three steps with decay `kind` and compares with `decayAt(h, i)` of
  /// the decay operand's elements.
  void check(const std::string &kind, const std::string &decayShape,
             int decayCount, double (*decayAt)(const Numbers &, int, int));
};

/// Prefix sums of the parts of the hidden vector.
constexpr int kQ = 0, kK = kQ + kHeads * kKeys, kV = kK + kHeads * kKeys,
              kBeta = kV + kHeads * kValues, kDecay = kBeta + kHeads;

std::string sliceOf(const std::string &name, int begin, int count, int total,
                    const std::string &shape) {
  std::string from = "tensor<" + std::to_string(total) + "xf32>";
  std::string flat = "tensor<" + std::to_string(count) + "xf32>";
  return "%" + name + "_flat = mega.slice %x from " + std::to_string(begin) +
         " : " + from + " -> " + flat + "\n%" + name + " = mega.reshape %" +
         name + "_flat : " + flat + " -> tensor<" + shape + "xf32>\n";
}

void DeltaRuleTest::check(const std::string &kind,
                          const std::string &decayShape, int decayCount,
                          double (*decayAt)(const Numbers &, int, int)) {
  int total = kDecay + decayCount;
  std::string x = "tensor<" + std::to_string(total) + "xf32>";
  std::string text = "mega.state @S : tensor<3x8x16xf32>\n"
                     "mega.block @b(%x: " +
                     x + ") -> tensor<48xf32> {\n";
  text += sliceOf("q", kQ, kHeads * kKeys, total, "3x8");
  text += sliceOf("k", kK, kHeads * kKeys, total, "3x8");
  text += sliceOf("v", kV, kHeads * kValues, total, "3x16");
  text += sliceOf("beta", kBeta, kHeads, total, "3");
  if (decayCount)
    text += sliceOf("d", kDecay, decayCount, total, decayShape);
  text += "%o = mega.delta_rule %q, %k, %v, %beta, @S decay(" + kind + ")";
  text += decayCount ? " %d" : "";
  text += " : tensor<3x8xf32>, tensor<3x8xf32>, tensor<3x16xf32>, "
          "tensor<3xf32>";
  if (decayCount)
    text += ", tensor<" + decayShape + "xf32>";
  text += R"( -> tensor<3x16xf32>
      %y = mega.reshape %o : tensor<3x16xf32> -> tensor<48xf32>
      mega.return %y : tensor<48xf32>
    })";
  load(text);

  Numbers s = random(31, kHeads * kKeys * kValues, -1, 1);
  setState("S", ElementType::F32, {kHeads, kKeys, kValues}, s);
  for (unsigned step = 0; step < 3; ++step) {
    Numbers hidden = random(32 + step, total, 0, 1);
    Numbers q = part(hidden, kQ, kHeads * kKeys);
    Numbers k = part(hidden, kK, kHeads * kKeys);
    Numbers v = part(hidden, kV, kHeads * kValues);
    Numbers beta = part(hidden, kBeta, kHeads);
    Numbers decay = part(hidden, kDecay, decayCount);
    Numbers wanted(kHeads * kValues, 0.0);
    for (int h = 0; h < kHeads; ++h)
      for (int j = 0; j < kValues; ++j) {
        auto at = [&](int i) -> double & {
          return s[(h * kKeys + i) * kValues + j];
        };
        double predicted = 0;
        for (int i = 0; i < kKeys; ++i) {
          at(i) *= decayAt(decay, h, i);
          predicted += at(i) * k[h * kKeys + i];
        }
        double error = v[h * kValues + j] - predicted;
        for (int i = 0; i < kKeys; ++i) {
          at(i) += beta[h] * k[h * kKeys + i] * error;
          wanted[h * kValues + j] += at(i) * q[h * kKeys + i];
        }
      }
    expectNear(run(hidden), wanted, 2e-6);
    expectNear(state("S"), s, 2e-6);
  }
}

TEST_F(DeltaRuleTest, NoDecay) {
  check("none", "", 0, [](const Numbers &, int, int) { return 1.0; });
}

TEST_F(DeltaRuleTest, DecayPerHead) {
  check("head", "3", kHeads,
        [](const Numbers &decay, int h, int) { return decay[h]; });
}

TEST_F(DeltaRuleTest, DecayPerChannel) {
  check(
      "channel", "3x8", kHeads * kKeys,
      [](const Numbers &decay, int h, int i) { return decay[h * kKeys + i]; });
}

} // namespace
