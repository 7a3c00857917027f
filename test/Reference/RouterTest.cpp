// SPDX-License-Identifier: Apache-2.0
/// \file
/// mega.router.

#include "Support.h"

#include <cmath>

using namespace mega::test;

namespace {

class RouterTest : public BlockTest {
protected:
  /// A router over eight logits that chooses three.
  void loadRouter(const std::string &attributes) {
    load(R"(
      mega.weight @bias : tensor<8xf32>
      mega.block @b(%x: tensor<8xbf16>) -> tensor<3xf32> {
        %ids, %w = mega.router %x )" +
         attributes + R"( probe("p")
            : tensor<8xbf16> -> tensor<3xi32>, tensor<3xf32>
        mega.return %w : tensor<3xf32>
      })");
  }
  void SetUp() override { addF32("bias", {8}, {0, 0, 0, 0, 0, 0, 0.9, 0}); }

  std::vector<int32_t> ids() { return interpreter->probes()[0].ids; }

  const Numbers logits = {0.5, 2, -1, 1.5, 0, -3, -2, 1};
};

Numbers softmax(const Numbers &logits) {
  double total = 0;
  Numbers scores;
  for (double logit : logits)
    total += std::exp(logit);
  for (double logit : logits)
    scores.push_back(std::exp(logit) / total);
  return scores;
}

TEST_F(RouterTest, Softmax) {
  loadRouter("softmax scale(2.5)");
  Numbers scores = softmax(logits), found = run(logits);
  EXPECT_EQ(ids(), (std::vector<int32_t>{1, 3, 7}));
  expectNear(found, {2.5 * scores[1], 2.5 * scores[3], 2.5 * scores[7]}, 1e-6);
}

TEST_F(RouterTest, SoftmaxRenormalised) {
  loadRouter("softmax renormalize(0.25) scale(2.0)");
  Numbers s = softmax(logits), found = run(logits);
  double total = s[1] + s[3] + s[7] + 0.25;
  expectNear(found, {2 * s[1] / total, 2 * s[3] / total, 2 * s[7] / total},
             1e-6);
}

TEST_F(RouterTest, SigmoidWithBias) {
  loadRouter("sigmoid bias(@bias) renormalize(0.0) scale(1.0)");
  Numbers found = run(logits);
  // The bias lifts expert 6 to 0.119 + 0.9, but its weight is its score.
  EXPECT_EQ(ids(), (std::vector<int32_t>{6, 1, 3}));
  auto score = [&](int e) { return 1 / (1 + std::exp(-logits[e])); };
  double total = score(6) + score(1) + score(3);
  expectNear(found, {score(6) / total, score(1) / total, score(3) / total},
             1e-6);
}

TEST_F(RouterTest, TiesGoToTheLowerIndex) {
  loadRouter("softmax scale(1.0)");
  run({1, 2, 2, 1, 1, 1, 1, 1});
  EXPECT_EQ(ids(), (std::vector<int32_t>{1, 2, 0}));
  EXPECT_EQ(interpreter->probes()[0].runnerUp, 3);
  EXPECT_EQ(interpreter->probes()[0].gap, 0.0f);
}

TEST_F(RouterTest, ReportsTheGap) {
  loadRouter("softmax scale(1.0)");
  run(logits);
  const mega::reference::RouterProbe &probe = interpreter->probes()[0];
  EXPECT_EQ(probe.name, "p");
  EXPECT_EQ(probe.runnerUp, 0);
  EXPECT_EQ(probe.gap, 0.5f);
  EXPECT_EQ(Numbers(probe.logits.begin(), probe.logits.end()), logits);
}

TEST_F(RouterTest, NanChoosesValidExperts) {
  loadRouter("softmax scale(1.0)");
  run(Numbers(8, NAN));
  EXPECT_EQ(ids(), (std::vector<int32_t>{0, 1, 2}));
}

} // namespace
