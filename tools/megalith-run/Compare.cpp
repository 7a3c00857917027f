// SPDX-License-Identifier: Apache-2.0
/// \file
/// How far two runs are apart.

#include "Compare.h"

#include "Tensors.h"

#include <cmath>

using namespace mega::run;

Distance mega::run::distanceOf(const megalith::Tensor &found,
                               const megalith::Tensor &wanted) {
  std::vector<float> a = valuesOf(found), b = valuesOf(wanted);
  double aa = 0, bb = 0, ab = 0, error = 0;
  for (auto [x, y] : llvm::zip_equal(a, b)) {
    double u = x, v = y;
    aa += u * u;
    bb += v * v;
    ab += u * v;
    error += (u - v) * (u - v);
  }
  if (error == 0)
    return {};
  return {ab / std::sqrt(aa * bb), std::sqrt(error / bb)};
}

void mega::run::worsen(Distance &worst, const Distance &other) {
  if (!(other.cosine >= worst.cosine))
    worst.cosine = other.cosine;
  if (!(other.relative <= worst.relative))
    worst.relative = other.relative;
}

std::vector<RoutingDifference>
mega::run::compareChoices(llvm::ArrayRef<Choice> found,
                          llvm::ArrayRef<Choice> wanted) {
  std::vector<RoutingDifference> differences;
  for (const Choice &want : wanted) {
    const Choice *match = llvm::find_if(found, [&](const Choice &choice) {
      return choice.probe == want.probe;
    });
    if (match == found.end())
      continue;
    std::vector<int32_t> a = match->ids, b = want.ids;
    llvm::sort(a);
    llvm::sort(b);
    if (a != b)
      differences.push_back({want.probe, match->ids, want.ids, want.gap});
  }
  return differences;
}
