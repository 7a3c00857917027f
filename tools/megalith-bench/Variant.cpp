// SPDX-License-Identifier: Apache-2.0
/// \file
/// Loads a bundle and gives it numbers to work on.

#include "Variant.h"

#include "mega/runtime/RandomInit.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>

using namespace megalith;
using namespace megalith::bench;
using nlohmann::json;

static constexpr const char *kStampProbe = "megalith.stamps";
static constexpr int kInputs = 64;

/// The value, or the failed status of `path` thrown.
template <typename T> static T take(Result<T> result, const std::string &path) {
  if (!result)
    throw BenchError(path + ": " + result.status().message());
  return std::move(*result);
}

static void expect(const Status &status, const std::string &path) {
  if (!status.ok())
    throw BenchError(path + ": " + status.message());
}

const TensorMap &WeightStore::get(const Manifest &manifest) {
  std::vector<std::string> names;
  for (const WeightDesc &weight : manifest.weights)
    for (const TensorDesc &tensor : weight.tensors)
      names.push_back(fmt::format("{} {} {} {}\n", tensor.name,
                                  shapeText(tensor.shape),
                                  dtypeName(tensor.dtype), weight.group));
  std::sort(names.begin(), names.end());
  std::string key;
  for (const std::string &name : names)
    key += name;
  auto it = made.find(key);
  if (it == made.end())
    it = made.emplace(key, take(randomWeights(manifest, seed, threads),
                                "random weights"))
             .first;
  return it->second;
}

ScheduleFacts bench::parseSchedule(const std::string &text,
                                   const std::string &path) {
  ScheduleFacts facts;
  json manifest = json::parse(text, nullptr, false);
  try {
    const json &schedule = manifest.at("schedule");
    facts.barriers = schedule.at("barriers").get<int64_t>();
    const json &bytes = schedule.at("bytes_per_step");
    facts.weightBytes = bytes.at("weights").get<int64_t>();
    facts.stateBytes = bytes.at("state").get<int64_t>();
    facts.cacheBytesPerToken = bytes.at("cache_per_token").get<int64_t>();
    for (const json &phase : schedule.at("phase_list"))
      facts.phases.push_back(
          {phase.at("stages").get<std::vector<std::string>>(),
           phase.at("bytes").get<int64_t>()});
  } catch (const json::exception &error) {
    throw BenchError(
        fmt::format("{}: manifest's 'schedule' does not say what a "
                    "step moves: {}",
                    path, error.what()));
  }
  return facts;
}

Variant::Variant(Gpu &gpu, const std::string &path, WeightStore &weights,
                 uint64_t seed, int64_t rows, int device)
    : path(path), gpu(gpu), bundle(take(loadBundle(path), path)) {
  schedule = parseSchedule(bundle->text, path);
  // Bundles of one token a step do not say so.
  batch = json::parse(bundle->text).value("batch", 1);
  const Manifest &manifest = bundle->manifest;
  instance =
      take(Instance::create(bundle, device,
                            manifest.hasCaches() ? rows + kSpareRows : 0),
           path);
  expect(instance->bindTensors(weights.get(manifest)), path);
  expect(instance->weightsReady(), path);
  TensorMap states = take(randomStates(manifest, seed, rows), path);
  for (const auto &[name, tensor] : states.tensors)
    expect(instance->setState(name, tensor.data, tensor.bytes), path);
  for (int i = 0; i < kInputs; ++i) {
    Tensor token = take(randomToken(seed, fmt::format("token{}", i),
                                    manifest.input.dtype, manifest.input.shape),
                        path);
    inputs.push_back(gpu.allocate(token.bytes));
    gpu.upload(inputs.back(), token.data, token.bytes);
  }
  output = gpu.allocate(manifest.output.bytes);
}

void Variant::expectBatch(int wanted) const {
  if (wanted != batch)
    throw BenchError(fmt::format(
        "bundle '{}' is compiled for {} token a step, expected --batch={}, "
        "found --batch={}",
        path, batch, batch, wanted));
}

void Variant::begin(int64_t context) {
  expect(instance->setPosition(context), path);
}

void Variant::step() {
  expect(instance->step(inputs[next++ % inputs.size()], output, nullptr), path);
}

/// An element of a bf16 or f32 vector.
static float elementOf(const std::vector<uint8_t> &bytes, DType dtype,
                       size_t index) {
  uint32_t bits = 0;
  if (dtype == DType::F32)
    std::memcpy(&bits, &bytes[4 * index], 4);
  else
    bits = uint32_t(bytes[2 * index] | bytes[2 * index + 1] << 8) << 16;
  float value;
  std::memcpy(&value, &bits, 4);
  return value;
}

void Variant::checkOutput() {
  const TensorDesc &desc = bundle->manifest.output;
  std::vector<uint8_t> bytes(desc.bytes);
  gpu.download(bytes.data(), output, bytes.size());
  size_t count = desc.bytes / (desc.dtype == DType::F32 ? 4 : 2);
  bool some = false;
  for (size_t i = 0; i < count; ++i) {
    float value = elementOf(bytes, desc.dtype, i);
    if (!std::isfinite(value))
      throw BenchError(fmt::format("{}: output element {} is {}, expected a "
                                   "finite number",
                                   path, i, value));
    some |= value != 0;
  }
  if (!some)
    throw BenchError(path + ": output is all zeros, expected a token");
}

bool Variant::instrumented() const {
  for (const ProbeDesc &probe : bundle->manifest.probes)
    if (probe.tensor.name == kStampProbe)
      return true;
  return false;
}

std::vector<uint32_t> Variant::stamps() {
  for (const ProbeDesc &probe : bundle->manifest.probes) {
    if (probe.tensor.name != kStampProbe)
      continue;
    std::vector<uint32_t> all(probe.tensor.bytes / sizeof(uint32_t));
    expect(instance->readProbe(kStampProbe, all.data(), probe.tensor.bytes),
           path);
    size_t used = schedule.phases.size() * size_t(instance->grid()) * 2;
    if (used > all.size())
      throw BenchError(fmt::format("{}: {} stamps do not hold {} phases of {} "
                                   "CTAs",
                                   path, all.size(), schedule.phases.size(),
                                   instance->grid()));
    all.resize(used);
    return all;
  }
  throw BenchError(path + " is not instrumented, expected a bundle made with "
                          "megalithc --instrument");
}
