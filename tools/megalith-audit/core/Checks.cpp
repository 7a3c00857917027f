// SPDX-License-Identifier: Apache-2.0
/// \file
/// The order of the checks, and what they share.

#include "Checks.h"

#include "mega/runtime/DType.h"
#include "mega/runtime/RandomInit.h"

#include <cmath>
#include <cstring>

using namespace mega::audit;
using namespace megalith;

int64_t mega::audit::rowsFor(const Plan &plan) {
  return plan.context + plan.reruns + 4;
}

Tensor Bench::token(int64_t index) const {
  const TensorDesc &input = subject.manifest().input;
  return take(randomToken(plan.seed + 1, fmt::format("token{}", index),
                          input.dtype, input.shape));
}

Start Bench::start(uint64_t salt, std::optional<int64_t> context) const {
  int64_t rows = context.value_or(plan.context);
  return {take(randomStates(subject.manifest(), plan.seed + salt, rows)), rows};
}

bool mega::audit::same(const Tensor &a, const Tensor &b) {
  return a.bytes == b.bytes && std::memcmp(a.data, b.data, a.bytes) == 0;
}

static std::vector<float> valuesOf(const Tensor &tensor) {
  std::vector<float> values;
  if (tensor.dtype == DType::BF16) {
    for (uint64_t at = 0; at < tensor.bytes; at += 2) {
      uint16_t bits;
      std::memcpy(&bits, tensor.data + at, sizeof bits);
      values.push_back(fromBf16(bits));
    }
  } else {
    values.resize(tensor.bytes / sizeof(float));
    std::memcpy(values.data(), tensor.data, values.size() * sizeof(float));
  }
  return values;
}

double mega::audit::distance(const Tensor &found, const Tensor &wanted) {
  std::vector<float> a = valuesOf(found), b = valuesOf(wanted);
  double error = 0, norm = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    double difference = double(a[i]) - b[i];
    error += difference * difference;
    norm += double(b[i]) * b[i];
  }
  return error == 0 ? 0 : std::sqrt(error / norm);
}

bool mega::audit::finite(const Tensor &tensor) {
  for (float value : valuesOf(tensor))
    if (!std::isfinite(value))
      return false;
  return true;
}

std::vector<Finding> mega::audit::runChecks(Bench &bench,
                                            const CheckListener &begins) {
  struct Check {
    const char *name;
    Finding (*run)(Bench &);
  };
  // Those that look at calls and clocks come last: CUPTI slows what follows.
  const Check checks[] = {
      {"first steps", checkReference},
      {"input overwritten", checkInputs},
      {"states overwritten", checkStates},
      {"caches overwritten", checkCaches},
      {"output over the input", checkInPlace},
      {"bit-identical reruns", checkReruns},
      {"scratch poisoned", checkScratch},
      {"steps without a hang", checkLongRun},
      {"capacity", checkCapacity},
      {"second instance", checkSecondInstance},
      {"every weight zeroed", checkWeights},
      {"time above the floor", checkTime},
      {"one launch a step", checkLaunches},
  };
  std::vector<Finding> findings;
  bool hangs = false;
  for (const Check &check : checks) {
    Finding finding;
    if (begins)
      begins(check.name, findings.size(), std::size(checks));
    if (hangs) {
      finding = {"", Outcome::Skipped, "the device hangs"};
    } else {
      try {
        finding = check.run(bench);
      } catch (const Error &error) {
        finding = {"", Outcome::Fail, error.status.message()};
        hangs = error.status.code() == MEGALITH_TIMEOUT;
      }
    }
    finding.check = check.name;
    findings.push_back(std::move(finding));
  }
  return findings;
}
