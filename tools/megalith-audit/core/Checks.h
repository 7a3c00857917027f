// SPDX-License-Identifier: Apache-2.0
/// \file
/// The checks of an audit.

#ifndef MEGA_TOOLS_AUDIT_CHECKS_H
#define MEGA_TOOLS_AUDIT_CHECKS_H

#include "CallLog.h"
#include "Finding.h"
#include "Gpu.h"
#include "Subject.h"

#include <functional>
#include <optional>
#include <string>

namespace mega::audit {

/// How much to look at, and what is near enough.
struct Plan {
  uint64_t seed = 0;       ///< of states and tokens
  int64_t context = 16;    ///< tokens before the first step
  int64_t steps = 1000;    ///< of the long run
  int64_t reruns = 8;      ///< steps that are repeated
  int64_t maxInputs = 256; ///< tokens that may be tried for one weight
  double maxError = 1e-2;  ///< relative L2, of an output to the reference's
  double tieGap = 0.05;    ///< a router's choice this close is no choice
  std::string cupti;       ///< the library; empty to look for it
};

/// Rows that every instance of an audit needs.
int64_t rowsFor(const Plan &plan);

/// Everything that checks share.
struct Bench {
  Plan plan;
  /// The instance under audit.
  Subject &subject;
  /// Every weight of the manifest.
  const TensorMap &weights;
  /// Null if no description was given.
  Oracle *oracle = nullptr;
  /// Both null on the simulator.
  GpuSubject *gpuSubject = nullptr;
  Gpu *gpu = nullptr;
  /// Told how far the check that runs is, as in "12 of 419 parts". May be
  /// empty.
  std::function<void(const std::string &)> progress = nullptr;

  /// Token `index` of the audit.
  Tensor token(int64_t index) const;
  /// Random states of the plan's context, or of another.
  Start start(uint64_t salt = 0, std::optional<int64_t> context = {}) const;
};

/// Told which check begins, from 0, and of how many.
using CheckListener =
    std::function<void(const std::string &name, size_t index, size_t count)>;

/// Runs every check, telling `begins` before each if it is not empty. A check
/// that throws has failed; if the device hangs, the rest is skipped.
std::vector<Finding> runChecks(Bench &bench, const CheckListener &begins = {});

// The checks one by one.
Finding checkReference(Bench &bench);
Finding checkInputs(Bench &bench);
Finding checkStates(Bench &bench);
Finding checkCaches(Bench &bench);
Finding checkWeights(Bench &bench);
Finding checkScratch(Bench &bench);
Finding checkLongRun(Bench &bench);
Finding checkReruns(Bench &bench);
Finding checkCapacity(Bench &bench);
Finding checkSecondInstance(Bench &bench);
Finding checkInPlace(Bench &bench);
Finding checkLaunches(Bench &bench);
Finding checkTime(Bench &bench);

/// Whether two tensors have the same bytes.
bool same(const Tensor &a, const Tensor &b);
/// Relative L2 distance of `found` from `wanted`; NaN if any is not finite.
double distance(const Tensor &found, const Tensor &wanted);
/// Whether every element is finite; bf16 or f32.
bool finite(const Tensor &tensor);

} // namespace mega::audit

#endif // MEGA_TOOLS_AUDIT_CHECKS_H
