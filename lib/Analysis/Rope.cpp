// SPDX-License-Identifier: Apache-2.0
/// \file
/// Rotary inverse frequencies.

#include "mega/Analysis/Rope.h"

#include <cmath>

std::vector<float> mega::ropeInverseFrequencies(int64_t size, double theta) {
  std::vector<float> table(size / 2);
  for (int64_t i = 0; i < size / 2; ++i) {
    float exponent = static_cast<float>(2 * i) / static_cast<float>(size);
    table[i] = 1.0f / std::pow(static_cast<float>(theta), exponent);
  }
  return table;
}
