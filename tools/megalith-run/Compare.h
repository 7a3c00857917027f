// SPDX-License-Identifier: Apache-2.0
/// \file
/// How far two runs are apart.

#ifndef MEGA_TOOLS_RUN_COMPARE_H
#define MEGA_TOOLS_RUN_COMPARE_H

#include "Executor.h"

namespace mega::run {

/// Two vectors' angle and distance.
struct Distance {
  double cosine = 1;
  /// ||found - wanted|| / ||wanted||.
  double relative = 0;
};

/// NaN or infinity in `found` gives NaN. Both zero is no distance.
Distance distanceOf(const megalith::Tensor &found,
                    const megalith::Tensor &wanted);

/// Keeps the worse of each; NaN is worst.
void worsen(Distance &worst, const Distance &other);

/// A router that chose another set of experts than the reference.
struct RoutingDifference {
  std::string probe;
  std::vector<int32_t> found, wanted;
  /// The reference's logit gap between its last choice and the runner-up.
  float gap = 0;
};

/// Probes that both have, in the reference's order, order within a choice
/// aside.
std::vector<RoutingDifference> compareChoices(llvm::ArrayRef<Choice> found,
                                              llvm::ArrayRef<Choice> wanted);

} // namespace mega::run

#endif // MEGA_TOOLS_RUN_COMPARE_H
