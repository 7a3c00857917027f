// SPDX-License-Identifier: Apache-2.0
/// \file
/// A bundle that is measured: an instance with random weights, state and
/// inputs.

#ifndef MEGALITH_TOOLS_BENCH_VARIANT_H
#define MEGALITH_TOOLS_BENCH_VARIANT_H

#include "Gpu.h"

#include "mega/runtime/Instance.h"

#include <nlohmann/json.hpp>

#include <map>

namespace megalith::bench {

/// Random weights, made once for all bundles of one block.
class WeightStore {
public:
  WeightStore(uint64_t seed, unsigned threads) : seed(seed), threads(threads) {}

  /// Every weight of the manifest. Throws BenchError.
  const TensorMap &get(const Manifest &manifest);

private:
  uint64_t seed;
  unsigned threads;
  std::map<std::string, TensorMap> made;
};

/// The manifest's `schedule`, which the runtime does not need.
struct ScheduleFacts {
  struct Phase {
    std::vector<std::string> stages;
    int64_t bytes = 0;
  };
  std::vector<Phase> phases;
  int64_t barriers = 0;
  int64_t weightBytes = 0, stateBytes = 0, cacheBytesPerToken = 0;

  /// What a step must move with `context` rows in each cache.
  int64_t bytes(int64_t context) const {
    return weightBytes + stateBytes + cacheBytesPerToken * context;
  }
};

/// Reads the schedule of a manifest's text; `path` names it in errors.
ScheduleFacts parseSchedule(const std::string &text, const std::string &path);

/// One bundle on the device. Throws BenchError.
class Variant {
public:
  /// `rows` is the largest context, which the caches hold from the start.
  Variant(Gpu &gpu, const std::string &path, WeightStore &weights,
          uint64_t seed, int64_t rows, int device);

  /// Refuses a number of tokens a step that the bundle is not compiled for.
  void expectBatch(int batch) const;

  /// Puts the position to `context`; the states stay as they are.
  void begin(int64_t context);

  /// Enqueues a step on the next input.
  void step();

  /// Throws unless the last step's output is finite and not all zero.
  void checkOutput();

  /// Whether its kernel stamps the clock.
  bool instrumented() const;

  /// Begin and end of each phase and CTA in the last step, in SM clocks modulo
  /// 2^32: stamps[(phase * grid + cta) * 2 + {0, 1}].
  std::vector<uint32_t> stamps();

  const std::string path;
  ScheduleFacts schedule;
  const Manifest &manifest() const { return bundle->manifest; }
  const Instance &running() const { return *instance; }

private:
  Gpu &gpu;
  std::shared_ptr<const Bundle> bundle;
  std::unique_ptr<Instance> instance;
  std::vector<uint64_t> inputs;
  size_t next = 0;
  uint64_t output = 0;
  int batch = 1;
};

/// Steps beyond the largest context for which the caches have room.
constexpr int64_t kSpareRows = 1024;

} // namespace megalith::bench

#endif // MEGALITH_TOOLS_BENCH_VARIANT_H
