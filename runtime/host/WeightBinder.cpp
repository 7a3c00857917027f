// SPDX-License-Identifier: Apache-2.0

#include "WeightBinder.h"

#include "Error.h"
#include "mega/runtime/Repack.h"

#include <algorithm>
#include <cmath>
#include <set>

using namespace megalith;

namespace {

/// Host memory for packed units at a time.
constexpr uint64_t stagingBytes = 64ull << 20;

/// Throws unless every scale is finite and below 2^15: the packed layout stores
/// it times 2^113, which only then a bf16 holds.
void checkScales(const std::string &name, const Tensor &tensor) {
  for (uint64_t i = 0; i < tensor.bytes / 2; ++i) {
    uint16_t bits;
    std::memcpy(&bits, tensor.data + 2 * i, sizeof(bits));
    float scale = fromBf16(bits);
    if (!(std::fabs(scale) < 32768.0f))
      fail(MEGALITH_MISMATCH,
           "tensor {}: scale {} is {}, expected a magnitude below 32768",
           quote(name), i, scale);
  }
}

/// Throws unless every zero point is an integer in 0..15, as codes are.
void checkZeros(const std::string &name, const Tensor &tensor) {
  for (uint64_t i = 0; i < tensor.bytes / 2; ++i) {
    uint16_t bits;
    std::memcpy(&bits, tensor.data + 2 * i, sizeof(bits));
    float zero = fromBf16(bits);
    if (!(zero >= 0 && zero <= 15 && zero == float(int(zero))))
      fail(MEGALITH_MISMATCH,
           "tensor {}: zero point {} is {}, expected an integer in 0..15",
           quote(name), i, zero);
  }
}

QuantView viewOf(const WeightDesc &weight,
                 const std::map<std::string, Tensor> &staged) {
  QuantView view;
  view.experts = weight.experts();
  view.inputs = weight.inputs();
  view.outputs = weight.outputs();
  view.group = weight.group;
  view.codes = staged.at(weight.tensors[0].name).data;
  view.scales = staged.at(weight.tensors[1].name).data;
  view.zeros = staged.at(weight.tensors[2].name).data;
  return view;
}

} // namespace

WeightBinder::WeightBinder(const Manifest &manifest)
    : manifest(manifest), uploaded(manifest.packed.size()),
      regionsLeft(manifest.packed.size()) {
  for (size_t i = 0; i < manifest.weights.size(); ++i) {
    const WeightDesc &weight = manifest.weights[i];
    given.emplace_back(weight.tensors.size());
    for (size_t j = 0; j < weight.tensors.size(); ++j)
      places[weight.tensors[j].name] = Place{i, j};
  }
}

bool WeightBinder::wants(const std::string &name) const {
  return places.count(name) != 0;
}

void WeightBinder::validate(const std::string &name,
                            const Tensor &tensor) const {
  auto it = places.find(name);
  if (it == places.end())
    fail(MEGALITH_NOT_FOUND, "block {} has no tensor {}", quote(manifest.block),
         quote(name));
  const Place &place = it->second;
  const WeightDesc &weight = manifest.weights[place.weight];
  const TensorDesc &wanted = weight.tensors[place.index];
  if (tensor.dtype != wanted.dtype)
    fail(MEGALITH_MISMATCH, "tensor {}: dtype is {}, expected {}", quote(name),
         dtypeName(tensor.dtype), dtypeName(wanted.dtype));
  if (tensor.shape != wanted.shape)
    fail(MEGALITH_MISMATCH, "tensor {}: shape is {}, expected {}", quote(name),
         shapeText(tensor.shape), shapeText(wanted.shape));
  if (tensor.bytes != wanted.bytes)
    fail(MEGALITH_INVALID_ARGUMENT, "tensor {}: size is {} bytes, expected {}",
         quote(name), tensor.bytes, wanted.bytes);
  if (!tensor.data)
    fail(MEGALITH_INVALID_ARGUMENT, "tensor {}: data is null", quote(name));
  if (given[place.weight][place.index])
    fail(MEGALITH_INVALID_ARGUMENT, "tensor {} is already bound", quote(name));
  if (weight.kind == WeightDesc::Kind::Quant && place.index == 1)
    checkScales(name, tensor);
  if (weight.kind == WeightDesc::Kind::Quant && place.index == 2)
    checkZeros(name, tensor);
}

bool WeightBinder::complete(const RegionDesc &region,
                            const Staged &staged) const {
  for (size_t source : region.sources)
    for (const TensorDesc &tensor : manifest.weights[source].tensors)
      if (staged.count(tensor.name) == 0)
        return false;
  return true;
}

void WeightBinder::pack(const RegionDesc &region, const Staged &staged,
                        const Upload &upload) const {
  if (region.layout == PackLayout::Raw) {
    const WeightDesc &weight = manifest.weights[region.sources[0]];
    upload(region.offset, staged.at(weight.tensors[0].name).data, region.bytes);
    return;
  }
  std::vector<QuantView> views;
  for (size_t source : region.sources)
    views.push_back(viewOf(manifest.weights[source], staged));
  uint64_t unit = unitBytes(views[0].group);
  uint64_t units = region.bytes / unit;
  uint64_t chunk = std::min(units, stagingBytes / unit);
  std::vector<uint8_t> packed(chunk * unit);
  for (uint64_t first = 0; first < units; first += chunk) {
    uint64_t count = std::min(chunk, units - first);
    packUnits(region.layout, views, first, count, packed.data());
    upload(region.offset + first * unit, packed.data(), count * unit);
  }
}

void WeightBinder::bind(const std::vector<NamedTensor> &tensors,
                        const Upload &upload) {
  Staged next = staged;
  for (const auto &[name, tensor] : tensors) {
    validate(name, tensor);
    if (!next.emplace(name, tensor).second)
      fail(MEGALITH_INVALID_ARGUMENT, "tensor {} is already bound",
           quote(name));
  }

  std::vector<size_t> completed;
  for (size_t i = 0; i < manifest.packed.size(); ++i)
    if (!uploaded[i] && complete(manifest.packed[i], next))
      completed.push_back(i);
  for (size_t i : completed)
    pack(manifest.packed[i], next, upload);

  // Nothing below throws but for want of memory in the set of names.
  std::set<std::string> needed;
  std::vector<bool> done = uploaded;
  for (size_t i : completed)
    done[i] = true;
  for (size_t i = 0; i < manifest.packed.size(); ++i)
    if (!done[i])
      for (size_t source : manifest.packed[i].sources)
        for (const TensorDesc &tensor : manifest.weights[source].tensors)
          needed.insert(tensor.name);
  for (auto it = next.begin(); it != next.end();)
    it = needed.count(it->first) ? std::next(it) : next.erase(it);

  for (const auto &named : tensors) {
    const Place &place = places.at(named.first);
    given[place.weight][place.index] = true;
  }
  uploaded.swap(done);
  staged.swap(next);
  regionsLeft -= completed.size();
}

std::vector<std::string> WeightBinder::missing() const {
  std::vector<std::string> names;
  for (size_t i = 0; i < manifest.weights.size(); ++i)
    for (size_t j = 0; j < given[i].size(); ++j)
      if (!given[i][j])
        names.push_back(manifest.weights[i].tensors[j].name);
  return names;
}

void WeightBinder::expectReady() const {
  if (ready())
    return;
  constexpr size_t listed = 16;
  std::vector<std::string> names = missing();
  std::string text;
  for (size_t i = 0; i < std::min(listed, names.size()); ++i)
    text += (i ? ", " : "") + quote(names[i]);
  if (names.size() > listed)
    text += fmt::format(" and {} more", names.size() - listed);
  fail(MEGALITH_NOT_READY, "{} of {} weight tensors are not bound: {}",
       names.size(), places.size(), text);
}

Status megalith::packWeights(const Manifest &manifest, const TensorMap &map,
                             uint8_t *arena) {
  return guard([&] {
    if (manifest.weightBytes != 0)
      std::memset(arena, 0, manifest.weightBytes);
    WeightBinder binder(manifest);
    std::vector<WeightBinder::NamedTensor> tensors;
    for (const WeightDesc &weight : manifest.weights)
      for (const TensorDesc &tensor : weight.tensors)
        if (const Tensor *found = map.find(tensor.name))
          tensors.emplace_back(tensor.name, *found);
    binder.bind(tensors,
                [&](uint64_t offset, const uint8_t *data, uint64_t bytes) {
                  std::memcpy(arena + offset, data, bytes);
                });
    binder.expectReady();
  });
}
