// SPDX-License-Identifier: Apache-2.0

#include "Golden.h"

#include "mega/runtime/Safetensors.h"

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <sstream>

using namespace megalith;

Golden::Golden(const std::string &path) {
  auto read = readSafetensors(path);
  if (!read) {
    std::fprintf(stderr, "%s\n", read.status().message().c_str());
    std::exit(2);
  }
  map = *read;
}

int Golden::steps() const { return std::stoi(map.metadata.at("steps")); }
int64_t Golden::context() const {
  return std::stoll(map.metadata.at("context"));
}

Status Golden::bind(SimInstance &instance) const {
  Status status = instance.bindTensors(map, "weights/");
  return status.ok() ? instance.weightsReady() : status;
}

Status Golden::begin(SimInstance &instance) const {
  Status status = instance.reset();
  if (status.ok())
    status = instance.setPosition(context());
  const std::string prefix = "state_in/";
  for (const auto &[name, tensor] : map.tensors)
    if (status.ok() && name.compare(0, prefix.size(), prefix) == 0)
      status = instance.setState(name.substr(prefix.size()), tensor.data,
                                 tensor.bytes);
  return status;
}

static std::vector<float> widen(const Tensor &tensor) {
  std::vector<float> values(tensor.bytes /
                            (tensor.dtype == DType::F32 ? 4 : 2));
  for (size_t i = 0; i < values.size(); ++i) {
    if (tensor.dtype == DType::F32) {
      std::memcpy(&values[i], tensor.data + i * 4, 4);
      continue;
    }
    uint16_t half;
    std::memcpy(&half, tensor.data + i * 2, 2);
    uint32_t word = uint32_t(half) << 16;
    std::memcpy(&values[i], &word, 4);
  }
  return values;
}

double relativeL2(const Tensor &found, const Tensor &wanted) {
  std::vector<float> a = widen(found), b = widen(wanted);
  if (a.size() != b.size())
    return INFINITY;
  double error = 0, norm = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    error += (double(a[i]) - b[i]) * (double(a[i]) - b[i]);
    norm += double(b[i]) * b[i];
  }
  return std::sqrt(error / norm);
}

Status Golden::step(SimInstance &instance, int index,
                    StepDistance &distance) const {
  const std::string prefix = "step" + std::to_string(index) + "/";
  const Tensor &input = map.tensors.at(prefix + "hidden_in");
  const Tensor &wanted = map.tensors.at(prefix + "hidden_out");
  const Tensor &experts = map.tensors.at(prefix + "experts");
  uint8_t *bytes;
  const TensorDesc &desc = instance.bundle().manifest.output;
  Tensor found = Tensor::allocate(desc.dtype, desc.shape, &bytes);
  Status status = instance.stepHost(input.data, bytes);
  if (!status.ok())
    return status;
  distance.output = relativeL2(found, wanted);
  distance.sameExperts = true;
  size_t row = 0;
  for (const ProbeDesc &probe : instance.bundle().manifest.probes) {
    if (probe.tensor.dtype != DType::I32)
      continue;
    std::vector<uint8_t> ids(probe.tensor.bytes);
    status = instance.readProbe(probe.tensor.name, ids.data(), ids.size());
    if (!status.ok())
      return status;
    distance.sameExperts &=
        (row + 1) * ids.size() <= experts.bytes &&
        std::memcmp(ids.data(), experts.data + row * ids.size(), ids.size()) ==
            0;
    ++row;
  }
  return Status();
}

std::string readText(const std::string &path) {
  std::ifstream file(path, std::ios::binary);
  std::stringstream text;
  text << file.rdbuf();
  if (!file) {
    std::fprintf(stderr, "cannot read %s\n", path.c_str());
    std::exit(2);
  }
  return text.str();
}
