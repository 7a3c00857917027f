// SPDX-License-Identifier: Apache-2.0
/// \file
/// A bundle with random weights, states and tokens: a history of launches whose
/// outputs can be compared with another run's, bit for bit.

#ifndef MEGA_TEST_SIM_RANDOMBLOCK_H
#define MEGA_TEST_SIM_RANDOMBLOCK_H

#include "mega/runtime/Simulator.h"

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

/// What one history left.
struct History {
  megalith::Status status;
  /// Reports of the launch that failed, if one did.
  std::vector<megalith::SimReport> reports;
  /// Outputs of all steps, then the final states.
  std::vector<std::vector<uint8_t>> values;
};

/// Launches at `contexts[0]`, `contexts[0] + 1`, then, after a change of
/// position, at `contexts[1]` and so on.
class RandomBlock {
public:
  RandomBlock(std::shared_ptr<const megalith::Bundle> bundle, uint64_t seed,
              std::vector<int64_t> contexts, int stepsPerContext);

  History run(std::shared_ptr<megalith::SimKernel> kernel, int ctas,
              const megalith::SimOptions &options) const;

private:
  std::shared_ptr<const megalith::Bundle> bundle;
  std::vector<int64_t> contexts;
  int stepsPerContext;
  megalith::TensorMap weights, states;
  std::vector<megalith::Tensor> tokens;
};

#endif
