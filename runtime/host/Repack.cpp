// SPDX-License-Identifier: Apache-2.0
//
// Layouts mma_m16k128 and mma_m16k128_pair, both ways. A unit has 16 rows of
// 128 inputs. The layouts differ only in which output of which source a row
// is, so everything below works on "row slots" and one function, `rowOf`,
// knows the difference.

#include "mega/runtime/Repack.h"

#include "Error.h"
#include "Parallel.h"

#include <algorithm>
#include <cmath>

using namespace megalith;

namespace {

constexpr int64_t unitRows = 16;
constexpr int64_t unitInputs = 128;
constexpr int64_t codeBytes = unitRows * unitInputs / 2;
/// What a row slot's scale and zero are multiplied by. A code that lies in
/// bits 0..3 of a bf16 is a subnormal, code * 2^-133; one in bits 4..7 is code
/// * 2^-129, across the boundary to normal numbers, where bf16 stays linear. So
/// the kernel uses codes as they lie. Zeros match them, and scales bring both
/// kinds of slot to weight * 2^-20, exactly.
constexpr int scaleShift(int64_t slot) { return slot < 8 ? 113 : 109; }
constexpr int zeroShift(int64_t slot) { return slot < 8 ? 0 : 4; }

/// `bits` times 2^shift; exact for scales below scaleLimit.
uint16_t shiftBf16(uint16_t bits, int shift) {
  return toBf16(std::ldexp(fromBf16(bits), shift));
}

int64_t ceilDiv(int64_t a, int64_t b) { return a / b + (a % b != 0); }

bool isPair(PackLayout layout) { return layout == PackLayout::MmaM16K128Pair; }

/// Outputs of one source that a tile covers.
int64_t tileOutputs(PackLayout layout) {
  return isPair(layout) ? unitRows / 2 : unitRows;
}

/// A unit's place in its region.
struct UnitPlace {
  /// Sources of the unit's expert: one, or two for a pair.
  size_t source;
  /// The expert within that source.
  int64_t expert;
  int64_t tile;
  /// Which 128 inputs.
  int64_t slice;
};

UnitPlace placeOf(PackLayout layout, const std::vector<QuantView> &sources,
                  uint64_t unit) {
  const QuantView &first = sources[0];
  uint64_t slices = uint64_t(ceilDiv(first.inputs, unitInputs));
  uint64_t tiles = uint64_t(ceilDiv(first.outputs, tileOutputs(layout)));
  UnitPlace place;
  place.slice = int64_t(unit % slices);
  place.tile = int64_t(unit / slices % tiles);
  place.expert = int64_t(unit / slices / tiles);
  place.source = 0;
  // The shared stack's experts follow the routed stack's.
  if (place.expert >= first.experts) {
    place.expert -= first.experts;
    place.source = isPair(layout) ? 2 : 1;
  }
  return place;
}

/// A row slot of a unit: an output of a source, or padding.
struct Row {
  size_t source;
  int64_t output;
  bool padding;
};

Row rowOf(PackLayout layout, const std::vector<QuantView> &sources,
          const UnitPlace &place, int64_t slot) {
  Row row;
  row.source = place.source + (isPair(layout) ? size_t(slot / 8) : 0);
  row.output =
      place.tile * tileOutputs(layout) + (isPair(layout) ? slot % 8 : slot);
  row.padding = row.output >= sources[row.source].outputs;
  return row;
}

uint16_t loadBf16(const uint8_t *data, int64_t index) {
  uint16_t bits;
  std::memcpy(&bits, data + 2 * index, sizeof(bits));
  return bits;
}

/// The unit's codes as packed bytes, bytes[input / 2][slot]; padding 0.
void gatherCodes(PackLayout layout, const std::vector<QuantView> &sources,
                 const UnitPlace &place, uint8_t bytes[64][unitRows]) {
  int64_t firstPair = place.slice * unitInputs / 2;
  int64_t pairs = std::min<int64_t>(64, sources[0].inputs / 2 - firstPair);
  std::memset(bytes, 0, codeBytes);
  // Consecutive slots of a source are consecutive outputs, so copy runs.
  int64_t run = tileOutputs(layout);
  for (int64_t slot = 0; slot < unitRows; slot += run) {
    Row row = rowOf(layout, sources, place, slot);
    const QuantView &source = sources[row.source];
    int64_t width = std::min(run, source.outputs - row.output);
    const uint8_t *from =
        source.codes +
        (place.expert * (source.inputs / 2) + firstPair) * source.outputs +
        row.output;
    for (int64_t pair = 0; pair < pairs; ++pair)
      std::memcpy(&bytes[pair][slot], from + pair * source.outputs,
                  size_t(width));
  }
}

/// Index of a row's scale for input `input` of the expert.
int64_t scaleIndex(const QuantView &source, int64_t expert, int64_t input,
                   int64_t output) {
  return (expert * (source.inputs / source.group) + input / source.group) *
             source.outputs +
         output;
}

void packUnit(PackLayout layout, const std::vector<QuantView> &sources,
              uint64_t unit, uint8_t *out) {
  UnitPlace place = placeOf(layout, sources, unit);
  uint8_t bytes[64][unitRows];
  gatherCodes(layout, sources, place, bytes);

  // Byte input/2 has input k in its low nibble and k + 1 in its high one; the
  // word wants, low to high: k of both rows, k + 2, k + 1, k + 3.
  for (int m = 0; m < 8; ++m)
    for (int l = 0; l < 4; ++l) {
      int input = 32 * (m / 2) + 8 * l + 4 * (m % 2);
      const uint8_t *low = bytes[input / 2];
      const uint8_t *high = bytes[input / 2 + 1];
      for (int r = 0; r < 8; ++r) {
        uint32_t evens =
            uint32_t(low[r] & 15) | uint32_t(low[r + 8] & 15) << 4 |
            uint32_t(high[r] & 15) << 8 | uint32_t(high[r + 8] & 15) << 12;
        uint32_t odds = uint32_t(low[r] >> 4) | uint32_t(low[r + 8] >> 4) << 4 |
                        uint32_t(high[r] >> 4) << 8 |
                        uint32_t(high[r + 8] >> 4) << 12;
        uint32_t word = evens | odds << 16;
        std::memcpy(out + 512 * (m / 4) + 16 * (4 * r + l) + 4 * (m % 4), &word,
                    sizeof(word));
      }
    }

  int64_t group = std::min(sources[0].group, unitInputs);
  int64_t sets = unitInputs / group;
  for (int64_t set = 0; set < sets; ++set)
    for (int64_t slot = 0; slot < unitRows; ++slot) {
      Row row = rowOf(layout, sources, place, slot);
      const QuantView &source = sources[row.source];
      int64_t input = place.slice * unitInputs + set * group;
      uint16_t entry[2] = {0, 0};
      if (!row.padding && input < source.inputs) {
        int64_t index = scaleIndex(source, place.expert, input, row.output);
        entry[0] = shiftBf16(loadBf16(source.scales, index), scaleShift(slot));
        entry[1] = uint16_t(int(fromBf16(loadBf16(source.zeros, index)))
                            << zeroShift(slot));
      }
      std::memcpy(out + codeBytes + 64 * set + 8 * (slot % 8) + 4 * (slot / 8),
                  entry, sizeof(entry));
    }
}

} // namespace

uint64_t megalith::unitBytes(int64_t group) {
  return uint64_t(codeBytes + 64 * (unitInputs / std::min(group, unitInputs)));
}

std::optional<uint64_t>
megalith::unitCount(PackLayout layout,
                    const std::vector<const WeightDesc *> &sources) {
  int64_t experts = 0, units = 0;
  for (size_t i = 0; i < sources.size(); i += isPair(layout) ? 2 : 1)
    if (__builtin_add_overflow(experts, sources[i]->experts(), &experts))
      return std::nullopt;
  const WeightDesc &first = *sources[0];
  if (__builtin_mul_overflow(
          experts, ceilDiv(first.outputs(), tileOutputs(layout)), &units) ||
      __builtin_mul_overflow(units, ceilDiv(first.inputs(), unitInputs),
                             &units))
    return std::nullopt;
  return uint64_t(units);
}

void megalith::packUnits(PackLayout layout,
                         const std::vector<QuantView> &sources, uint64_t first,
                         uint64_t count, uint8_t *out, unsigned threads) {
  uint64_t bytes = unitBytes(sources[0].group);
  parallelFor(count, 256, threads, [&](uint64_t begin, uint64_t end) {
    for (uint64_t unit = begin; unit < end; ++unit)
      packUnit(layout, sources, first + unit, out + unit * bytes);
  });
}

std::vector<UnpackedQuant>
megalith::unpackRegion(PackLayout layout, const std::vector<QuantView> &sources,
                       const uint8_t *packed) {
  std::vector<UnpackedQuant> result;
  uint64_t units = 0;
  for (size_t i = 0; i < sources.size(); ++i) {
    const QuantView &source = sources[i];
    size_t elements = size_t(source.experts * source.inputs * source.outputs);
    size_t groups = elements / size_t(source.group);
    result.push_back({std::vector<uint8_t>(elements),
                      std::vector<uint16_t>(groups),
                      std::vector<uint8_t>(groups)});
    if (!isPair(layout) || i % 2 == 0)
      units += uint64_t(source.experts *
                        ceilDiv(source.outputs, tileOutputs(layout)) *
                        ceilDiv(source.inputs, unitInputs));
  }

  int64_t group = std::min(sources[0].group, unitInputs);
  for (uint64_t unit = 0; unit < units; ++unit) {
    const uint8_t *from = packed + unit * unitBytes(sources[0].group);
    UnitPlace place = placeOf(layout, sources, unit);
    for (int64_t slot = 0; slot < unitRows; ++slot) {
      Row row = rowOf(layout, sources, place, slot);
      const QuantView &source = sources[row.source];
      if (row.padding)
        continue;
      for (int64_t k = 0; k < unitInputs; ++k) {
        int64_t input = place.slice * unitInputs + k;
        if (input >= source.inputs)
          break;
        int64_t lane = 4 * (slot % 8) + k % 32 / 8;
        int64_t m = 2 * (k / 32) + k % 8 / 4;
        uint32_t word;
        std::memcpy(&word, from + 512 * (m / 4) + 16 * lane + 4 * (m % 4),
                    sizeof(word));
        constexpr int nibbleOf[4] = {0, 4, 2, 6};
        int nibble = nibbleOf[k % 4] + int(slot / 8);
        result[row.source].codes[size_t((place.expert * source.inputs + input) *
                                            source.outputs +
                                        row.output)] = word >> 4 * nibble & 15;

        const uint8_t *entry = from + codeBytes + 64 * (k / group) +
                               8 * (slot % 8) + 4 * (slot / 8);
        size_t index =
            size_t(scaleIndex(source, place.expert, input, row.output));
        result[row.source].scales[index] =
            shiftBf16(loadBf16(entry, 0), -scaleShift(slot));
        result[row.source].zeros[index] =
            uint8_t(loadBf16(entry, 1) >> zeroShift(slot));
      }
    }
  }
  return result;
}
