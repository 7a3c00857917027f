// SPDX-License-Identifier: Apache-2.0
/// \file
/// Zeroes parts of the weights, one at a time, in place.

#include "WeightSweep.h"

#include "mega/runtime/Repack.h"

using namespace mega::audit;
using namespace megalith;

/// Sources of one stack: two that share units, or one.
static size_t sourcesAStack(PackLayout layout) {
  return layout == PackLayout::MmaM16K128Pair ? 2 : 1;
}

std::vector<WeightPart> mega::audit::partsOf(const Manifest &manifest) {
  std::vector<WeightPart> parts;
  for (size_t r = 0; r < manifest.packed.size(); ++r) {
    const RegionDesc &region = manifest.packed[r];
    for (size_t s = 0; s < region.sources.size(); ++s) {
      const WeightDesc &weight = manifest.weights[region.sources[s]];
      bool stack =
          weight.kind == WeightDesc::Kind::Quant && weight.shape.size() == 3;
      for (size_t t = 0; t < weight.tensors.size(); ++t) {
        if (!stack) {
          parts.push_back({weight.tensors[t].name, r, s, t, -1});
          continue;
        }
        for (int64_t e = 0; e < weight.experts(); ++e)
          parts.push_back(
              {fmt::format("{}, expert {}", weight.tensors[t].name, e), r, s, t,
               e});
      }
    }
  }
  return parts;
}

/// One expert of a weight as a weight of its own, with tensor `zeroed` (3 for
/// none) taken from `zeros` instead.
static QuantView expertView(const WeightDesc &weight, const TensorMap &weights,
                            int64_t expert, size_t zeroed,
                            const std::vector<uint8_t> &zeros) {
  const uint8_t *bytes[3];
  for (size_t t = 0; t < 3; ++t) {
    const Tensor *tensor = weights.find(weight.tensors[t].name);
    bytes[t] = t == zeroed ? zeros.data()
                           : tensor->data + tensor->bytes / weight.experts() *
                                                uint64_t(expert);
  }
  return {1,        weight.inputs(), weight.outputs(), weight.group,
          bytes[0], bytes[1],        bytes[2]};
}

PackedPart mega::audit::packPart(const Manifest &manifest,
                                 const TensorMap &weights,
                                 const WeightPart &part) {
  const RegionDesc &region = manifest.packed[part.region];
  PackedPart packed;
  if (region.layout == PackLayout::Raw) {
    const WeightDesc &weight = manifest.weights[region.sources[0]];
    const Tensor *tensor = weights.find(weight.tensors[0].name);
    packed.offset = region.offset;
    packed.present.assign(tensor->data, tensor->data + tensor->bytes);
    packed.zeroed.assign(tensor->bytes, 0);
    return packed;
  }

  size_t width = sourcesAStack(region.layout);
  size_t first = part.source / width * width;
  // Experts of earlier stacks come first in the region.
  int64_t before = 0;
  for (size_t s = 0; s < first; s += width)
    before += manifest.weights[region.sources[s]].experts();
  int64_t expert = std::max<int64_t>(part.expert, 0);

  const WeightDesc &changed = manifest.weights[region.sources[part.source]];
  const Tensor *tensor = weights.find(changed.tensors[part.tensor].name);
  std::vector<uint8_t> zeros(tensor->bytes / changed.experts());
  std::vector<QuantView> present, zeroed;
  for (size_t s = first; s < first + width; ++s) {
    const WeightDesc &weight = manifest.weights[region.sources[s]];
    present.push_back(expertView(weight, weights, expert, 3, zeros));
    zeroed.push_back(expertView(weight, weights, expert,
                                s == part.source ? part.tensor : 3, zeros));
  }
  std::vector<const WeightDesc *> all;
  for (size_t source : region.sources)
    all.push_back(&manifest.weights[source]);
  int64_t experts = 0;
  for (size_t s = 0; s < all.size(); s += width)
    experts += all[s]->experts();
  uint64_t units = *unitCount(region.layout, all) / uint64_t(experts);
  uint64_t bytes = units * unitBytes(changed.group);
  packed.offset = region.offset + uint64_t(before + expert) * bytes;
  packed.present.resize(bytes);
  packed.zeroed.resize(bytes);
  packUnits(region.layout, present, 0, units, packed.present.data());
  packUnits(region.layout, zeroed, 0, units, packed.zeroed.data());
  return packed;
}
