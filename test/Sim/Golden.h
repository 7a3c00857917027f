// SPDX-License-Identifier: Apache-2.0
/// \file
/// Golden vectors for simulated blocks: how they are loaded and compared.

#ifndef MEGA_TEST_SIM_GOLDEN_H
#define MEGA_TEST_SIM_GOLDEN_H

#include "mega/runtime/Simulator.h"
#include "mega/runtime/TensorMap.h"

#include <string>
#include <vector>

/// How far a step is from its golden vectors.
struct StepDistance {
  double output = 0; ///< relative L2
  bool sameExperts = true;
};

/// Weights, states and tokens of a golden file, bound to an instance.
class Golden {
public:
  /// Exits with a message if the file cannot be read.
  explicit Golden(const std::string &path);

  int steps() const;
  int64_t context() const;

  /// Binds the weights.
  megalith::Status bind(megalith::SimInstance &instance) const;
  /// Puts states and position where step 0 starts.
  megalith::Status begin(megalith::SimInstance &instance) const;
  /// Runs step `index` and compares.
  megalith::Status step(megalith::SimInstance &instance, int index,
                        StepDistance &distance) const;

private:
  megalith::TensorMap map;
};

/// |found - wanted| / |wanted|, elements widened from BF16 or F32.
double relativeL2(const megalith::Tensor &found,
                  const megalith::Tensor &wanted);

/// Reads a file; exits with a message if it cannot.
std::string readText(const std::string &path);

#endif
