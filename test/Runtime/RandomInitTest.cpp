// SPDX-License-Identifier: Apache-2.0

#include "Support.h"

#include "mega/runtime/RandomInit.h"

#include <cmath>
#include <cstring>

using namespace megalith;

namespace {

bool sameBytes(const Tensor &a, const Tensor &b) {
  return a.dtype == b.dtype && a.shape == b.shape && a.bytes == b.bytes &&
         std::memcmp(a.data, b.data, a.bytes) == 0;
}

std::vector<double> floats(const Tensor &tensor) {
  std::vector<double> values;
  for (uint64_t i = 0; i < tensor.bytes; i += dtypeBits(tensor.dtype) / 8) {
    if (tensor.dtype == DType::BF16) {
      uint16_t bits;
      std::memcpy(&bits, tensor.data + i, 2);
      values.push_back(fromBf16(bits));
    } else {
      float value;
      std::memcpy(&value, tensor.data + i, 4);
      values.push_back(value);
    }
  }
  return values;
}

/// Mean, and second to fourth moments about 0 in units of `deviation`.
void expectNormal(const Tensor &tensor, double deviation) {
  std::vector<double> values = floats(tensor);
  double sum[5] = {};
  double largest = 0;
  for (double value : values) {
    double x = value / deviation;
    for (int i = 1; i <= 4; ++i)
      sum[i] += std::pow(x, i);
    largest = std::max(largest, std::abs(x));
  }
  double n = double(values.size());
  double sigma = 1 / std::sqrt(n);
  EXPECT_NEAR(sum[1] / n, 0, 5 * sigma);
  EXPECT_NEAR(sum[2] / n, 1, 5 * sigma * std::sqrt(2) + 2e-3);
  EXPECT_NEAR(sum[3] / n, 0, 5 * sigma * std::sqrt(15));
  EXPECT_NEAR(sum[4] / n, 3, 5 * sigma * std::sqrt(96) + 2e-2);
  EXPECT_GT(largest, 3.9);
  EXPECT_LE(largest, 4.02);
}

} // namespace

TEST(RandomInit, Moments) {
  expectNormal(*randomState(3, "S", DType::F32, {1000, 1000}), 0.05);
  expectNormal(*randomState(3, "kv", DType::BF16, {1000, 1000}), 0.1);
  expectNormal(*randomDense(3, "router", DType::BF16, {1000, 1000}), 0.02);
  expectNormal(*randomDense(3, "conv", DType::BF16, {3, 100000, 4}), 0.1);
  Spread balanced = Spread::Balanced;
  expectNormal(*randomDense(3, "router", DType::BF16, {1000, 1600}, balanced),
               1 / 40.0);
  expectNormal(*randomDense(3, "conv", DType::BF16, {3, 100000, 4}, balanced),
               0.1);
  expectNormal(*randomToken(3, "x", DType::BF16, {1000000}), 0.25);
}

TEST(RandomInit, NeighboursAreUncorrelated) {
  for (int64_t lag : {1, 2, 64, 4096}) {
    std::vector<double> x = floats(*randomState(5, "S", DType::F32, {1 << 20}));
    double sum = 0;
    for (size_t i = size_t(lag); i < x.size(); ++i)
      sum += x[i] * x[i - size_t(lag)] / (0.05 * 0.05);
    EXPECT_NEAR(sum / double(x.size()), 0, 5 / 1024.0) << lag;
  }
}

TEST(RandomInit, DependsOnSeedAndNameOnly) {
  Tensor a = *randomState(1, "S", DType::F32, {10000});
  EXPECT_TRUE(sameBytes(a, *randomState(1, "S", DType::F32, {10000})));
  EXPECT_FALSE(sameBytes(a, *randomState(2, "S", DType::F32, {10000})));
  EXPECT_FALSE(sameBytes(a, *randomState(1, "T", DType::F32, {10000})));
  // A cache's rows do not depend on their number.
  Tensor longer = *randomState(1, "S", DType::F32, {20001});
  EXPECT_EQ(std::memcmp(a.data, longer.data, a.bytes), 0);
}

TEST(RandomInit, ThreadsDoNotMatter) {
  RandomQuant one = *randomQuant(1, "w", {3, 256, 100}, 64, 1);
  RandomQuant many = *randomQuant(1, "w", {3, 256, 100}, 64, 7);
  EXPECT_TRUE(sameBytes(one.codes, many.codes));
  EXPECT_TRUE(sameBytes(one.scales, many.scales));
  EXPECT_TRUE(sameBytes(one.zeros, many.zeros));
}

TEST(RandomInit, ValuesArePinned) {
  // A change here changes every recorded result.
  std::vector<double> x = floats(*randomState(1, "S", DType::F32, {4}));
  std::vector<float> pinned = {0x1.90865p-5f, -0x1.a4f72ep-6f, 0x1.0bc894p-5f,
                               0x1.8c5b8p-4f};
  for (size_t i = 0; i < pinned.size(); ++i)
    EXPECT_EQ(float(x[i]), pinned[i]) << i;
}

TEST(RandomInit, NormGainsAreOne) {
  for (double value : floats(*randomDense(1, "n", DType::BF16, {33})))
    EXPECT_EQ(value, 1);
}

TEST(RandomInit, QuantisationFollowsTheFormula) {
  const int64_t inputs = 128, outputs = 70, group = 32;
  RandomQuant quant = *randomQuant(9, "w", {inputs, outputs}, group);
  // The same stream as a dense weight of that name and deviation.
  std::vector<double> w =
      floats(*randomDense(9, "w", DType::F32, {inputs, outputs}));
  std::vector<double> scales = floats(quant.scales);
  std::vector<double> zeros = floats(quant.zeros);
  for (int64_t g = 0; g < inputs / group; ++g)
    for (int64_t n = 0; n < outputs; ++n) {
      float low = INFINITY, high = -INFINITY;
      for (int64_t k = g * group; k < (g + 1) * group; ++k) {
        low = std::min(low, float(w[size_t(k * outputs + n)]));
        high = std::max(high, float(w[size_t(k * outputs + n)]));
      }
      float scale = std::max(high - low, 1e-8f) / 15;
      float zero =
          std::min(std::max(std::nearbyint(-low / scale), 0.0f), 15.0f);
      ASSERT_EQ(float(scales[size_t(g * outputs + n)]),
                fromBf16(toBf16(scale)));
      ASSERT_EQ(float(zeros[size_t(g * outputs + n)]), zero);
      for (int64_t k = g * group; k < (g + 1) * group; ++k) {
        float x = float(w[size_t(k * outputs + n)]);
        float code =
            std::min(std::max(std::nearbyint(x / scale + zero), 0.0f), 15.0f);
        uint8_t byte = quant.codes.data[k / 2 * outputs + n];
        ASSERT_EQ(float(k % 2 ? byte >> 4 : byte & 15), code);
      }
    }
}

TEST(RandomInit, BalancedWeightsGiveOutputsOfOrderOne) {
  // The codes are those of the same normals: only scales differ, by the
  // deviations' ratio, up to rounding.
  const int64_t inputs = 256, outputs = 40, group = 64;
  RandomQuant fixed = *randomQuant(9, "w", {inputs, outputs}, group);
  RandomQuant balanced =
      *randomQuant(9, "w", {inputs, outputs}, group, 0, Spread::Balanced);
  std::vector<double> a = floats(fixed.scales), b = floats(balanced.scales);
  for (size_t i = 0; i < a.size(); ++i)
    EXPECT_NEAR(b[i] / a[i], (1 / 16.0) / 0.02, 0.03) << i;
}

TEST(RandomInit, RefusesWhatItCannotMake) {
  expectFailure(randomQuant(1, "w", {100, 8}, 32).status(),
                MEGALITH_INVALID_ARGUMENT, {"'w'", "100x8", "groups of 32"});
  expectFailure(randomQuant(1, "w", {32}, 32).status(),
                MEGALITH_INVALID_ARGUMENT, {"'w'"});
  expectFailure(randomDense(1, "d", DType::I32, {4}).status(),
                MEGALITH_INVALID_ARGUMENT, {"'d'", "I32"});
  expectFailure(randomState(1, "s", DType::F32, {-1, 4}).status(),
                MEGALITH_INVALID_ARGUMENT, {"'s'", "-1x4"});
}

TEST(RandomInit, WholeManifest) {
  TensorMap weights = sampleTensors();
  EXPECT_EQ(weights.tensors.size(), 4u);
  TensorMap states = *randomStates(parsedSample(), 1, 5);
  EXPECT_EQ(states.find("kv")->shape, (std::vector<int64_t>{5, 8}));
}
