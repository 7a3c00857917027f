// SPDX-License-Identifier: Apache-2.0
//
// The packed layouts against docs/bundle-format.md. `checkRegion` is written
// from that page, not from the packer: it walks the bytes of every unit and
// says which element of which source must be there.

#include "Support.h"

#include "WeightBinder.h"
#include "mega/runtime/RandomInit.h"
#include "mega/runtime/Repack.h"

#include <cmath>
#include <cstring>

using namespace megalith;

namespace {

/// A source with its tensors.
struct Source {
  QuantView view;
  RandomQuant tensors;
};

Source makeSource(const std::string &name, int64_t experts, int64_t inputs,
                  int64_t outputs, int64_t group) {
  Result<RandomQuant> tensors =
      randomQuant(7, name, {experts, inputs, outputs}, group);
  EXPECT_OK(tensors.status());
  Source source;
  source.tensors = *tensors;
  source.view = {experts,
                 inputs,
                 outputs,
                 group,
                 source.tensors.codes.data,
                 source.tensors.scales.data,
                 source.tensors.zeros.data};
  return source;
}

unsigned codeOf(const QuantView &view, int64_t e, int64_t k, int64_t n) {
  if (k >= view.inputs || n >= view.outputs)
    return 0;
  uint8_t byte = view.codes[(e * (view.inputs / 2) + k / 2) * view.outputs + n];
  return k % 2 ? byte >> 4 : byte & 15;
}

/// bf16 bits of a scale or zero times 2^shift.
unsigned groupValue(const QuantView &view, const uint8_t *values, int shift,
                    int64_t e, int64_t k, int64_t n) {
  float value = 0;
  if (k < view.inputs && n < view.outputs) {
    uint16_t bits;
    int64_t row = e * (view.inputs / view.group) + k / view.group;
    std::memcpy(&bits, values + 2 * (row * view.outputs + n), 2);
    value = fromBf16(bits);
  }
  return toBf16(std::ldexp(value, shift));
}

unsigned half(const uint8_t *bytes) { return bytes[0] | bytes[1] << 8; }

void checkRegion(bool pair, const std::vector<QuantView> &sources,
                 const std::vector<uint8_t> &packed) {
  const int64_t inputs = sources[0].inputs, outputs = sources[0].outputs;
  const int64_t group = sources[0].group;
  const int64_t sets = 128 / std::min<int64_t>(group, 128);
  const size_t bytes = size_t(1024 + 64 * sets);
  const size_t stack = pair ? 2 : 1;
  size_t at = 0;
  for (size_t first = 0; first < sources.size(); first += stack)
    for (int64_t e = 0; e < sources[first].experts; ++e)
      for (int64_t t = 0; t * (pair ? 8 : 16) < outputs; ++t)
        for (int64_t g = 0; g * 128 < inputs; ++g) {
          ASSERT_LE(at + bytes, packed.size());
          const uint8_t *unit = packed.data() + at;
          at += bytes;
          // The element in row `row` of the unit, for input k of the unit.
          auto code = [&](int64_t row, int64_t k) {
            return pair ? codeOf(sources[first + size_t(row / 8)], e,
                                 128 * g + k, 8 * t + row % 8)
                        : codeOf(sources[first], e, 128 * g + k, 16 * t + row);
          };
          for (int r = 0; r < 8; ++r)
            for (int l = 0; l < 4; ++l)
              for (int m = 0; m < 8; ++m) {
                const uint8_t *word =
                    unit + (m / 4) * 512 + 16 * (4 * r + l) + 4 * (m % 4);
                int64_t k = 32 * (m / 2) + 8 * l + 4 * (m % 2);
                const unsigned expected[8] = {
                    code(r, k),         code(r + 8, k),    code(r, k + 2),
                    code(r + 8, k + 2), code(r, k + 1),    code(r + 8, k + 1),
                    code(r, k + 3),     code(r + 8, k + 3)};
                for (int i = 0; i < 8; ++i)
                  ASSERT_EQ(unsigned(word[i / 2] >> 4 * (i % 2) & 15),
                            expected[i])
                      << "unit at " << at - bytes << " r " << r << " l " << l
                      << " m " << m << " nibble " << i;
              }
          for (int64_t s = 0; s < sets; ++s)
            for (int r = 0; r < 8; ++r)
              for (int high = 0; high < 2; ++high) {
                const uint8_t *entry = unit + 1024 + 64 * s + 8 * r + 4 * high;
                const QuantView &view = sources[first + (pair ? high : 0)];
                int64_t n = pair ? 8 * t + r : 16 * t + r + 8 * high;
                int64_t k = 128 * g + 128 / sets * s;
                ASSERT_EQ(half(entry),
                          groupValue(view, view.scales, high ? 109 : 113, e, k, n));
                ASSERT_EQ(half(entry + 2),
                          groupValue(view, view.zeros, high ? -129 : -133, e, k, n));
              }
        }
  ASSERT_EQ(at, packed.size());
}

/// Packs, checks every element, and unpacks again.
void checkLayout(PackLayout layout, std::vector<Source> sources) {
  bool pair = layout == PackLayout::MmaM16K128Pair;
  std::vector<QuantView> views;
  std::vector<WeightDesc> descs;
  for (const Source &source : sources) {
    const QuantView &view = source.view;
    views.push_back(view);
    WeightDesc desc;
    desc.kind = WeightDesc::Kind::Quant;
    desc.shape = {view.experts, view.inputs, view.outputs};
    desc.group = view.group;
    descs.push_back(desc);
  }
  std::vector<const WeightDesc *> pointers;
  for (const WeightDesc &desc : descs)
    pointers.push_back(&desc);
  uint64_t units = unitCount(layout, pointers).value();
  uint64_t unit = unitBytes(views[0].group);
  std::vector<uint8_t> packed(units * unit, 0xcc);
  packUnits(layout, views, 0, units, packed.data());
  checkRegion(pair, views, packed);

  // In pieces, on one thread: the same bytes.
  std::vector<uint8_t> pieces(packed.size(), 0xdd);
  for (uint64_t first = 0; first < units; first += 3)
    packUnits(layout, views, first, std::min<uint64_t>(3, units - first),
              pieces.data() + first * unit, 1);
  EXPECT_EQ(packed, pieces);

  std::vector<UnpackedQuant> unpacked =
      unpackRegion(layout, views, packed.data());
  for (size_t i = 0; i < views.size(); ++i) {
    const QuantView &view = views[i];
    for (int64_t e = 0; e < view.experts; ++e)
      for (int64_t k = 0; k < view.inputs; ++k)
        for (int64_t n = 0; n < view.outputs; ++n) {
          int64_t index = (e * view.inputs + k) * view.outputs + n;
          ASSERT_EQ(unpacked[i].codes[size_t(index)], codeOf(view, e, k, n));
        }
    for (size_t j = 0; j < unpacked[i].scales.size(); ++j) {
      ASSERT_EQ(unpacked[i].scales[j], half(view.scales + 2 * j));
      ASSERT_EQ(toBf16(unpacked[i].zeros[j]), half(view.zeros + 2 * j));
    }
  }
}

} // namespace

TEST(Repack, Group128) {
  checkLayout(PackLayout::MmaM16K128, {makeSource("a", 1, 256, 48, 128)});
}

TEST(Repack, Group64) {
  checkLayout(PackLayout::MmaM16K128, {makeSource("a", 1, 256, 32, 64)});
}

TEST(Repack, Group256) {
  checkLayout(PackLayout::MmaM16K128, {makeSource("a", 2, 512, 16, 256)});
}

TEST(Repack, PaddedOutputsAndInputs) {
  checkLayout(PackLayout::MmaM16K128, {makeSource("a", 1, 160, 24, 32)});
  checkLayout(PackLayout::MmaM16K128, {makeSource("a", 1, 32, 1, 32)});
}

TEST(Repack, RoutedThenSharedExperts) {
  checkLayout(PackLayout::MmaM16K128, {makeSource("a", 3, 128, 24, 128),
                                       makeSource("b", 2, 128, 24, 128)});
}

TEST(Repack, Pair) {
  checkLayout(PackLayout::MmaM16K128Pair, {makeSource("a", 3, 256, 24, 128),
                                           makeSource("b", 3, 256, 24, 128)});
  checkLayout(PackLayout::MmaM16K128Pair, {makeSource("a", 1, 160, 20, 32),
                                           makeSource("b", 1, 160, 20, 32)});
}

TEST(Repack, PairWithSharedExperts) {
  checkLayout(PackLayout::MmaM16K128Pair,
              {makeSource("a", 2, 128, 16, 64), makeSource("b", 2, 128, 16, 64),
               makeSource("c", 1, 128, 16, 64),
               makeSource("d", 1, 128, 16, 64)});
}

TEST(Repack, UnalignedSources) {
  // A mapped file may put bf16 tensors at odd addresses.
  Source source = makeSource("a", 1, 128, 16, 128);
  std::vector<uint8_t> shifted(source.tensors.scales.bytes + 1);
  std::memcpy(shifted.data() + 1, source.view.scales,
              source.tensors.scales.bytes);
  source.view.scales = shifted.data() + 1;
  checkLayout(PackLayout::MmaM16K128, {source});
}

TEST(PackWeights, WholeArena) {
  Manifest manifest = parsedSample();
  TensorMap map = sampleTensors();
  std::vector<uint8_t> arena(manifest.weightBytes, 0xee);
  EXPECT_OK(packWeights(manifest, map, arena.data()));
  EXPECT_EQ(std::memcmp(arena.data(), map.find("norm")->data, 32), 0);
  QuantView view{1,
                 160,
                 24,
                 32,
                 map.find("w.w_q")->data,
                 map.find("w.scales")->data,
                 map.find("w.zeros")->data};
  checkRegion(false, {view}, {arena.begin() + 32, arena.end()});
}

TEST(WeightBinder, MissingTensorsAreListed) {
  Manifest manifest = parsedSample();
  TensorMap map = sampleTensors();
  map.tensors.erase("w.zeros");
  map.tensors.erase("norm");
  std::vector<uint8_t> arena(manifest.weightBytes);
  expectFailure(packWeights(manifest, map, arena.data()), MEGALITH_NOT_READY,
                {"2 of 4 weight tensors are not bound: 'norm', 'w.zeros'"});
}

TEST(WeightBinder, FailedUploadBindsNothing) {
  Manifest manifest = parsedSample();
  TensorMap map = sampleTensors();
  WeightBinder binder(manifest);
  std::vector<WeightBinder::NamedTensor> all(map.tensors.begin(),
                                             map.tensors.end());
  EXPECT_THROW(
      binder.bind(all, [](uint64_t, const uint8_t *, uint64_t) { throw 1; }),
      int);
  EXPECT_EQ(binder.missing().size(), 4u);
  int uploads = 0;
  binder.bind(all, [&](uint64_t, const uint8_t *, uint64_t) { ++uploads; });
  EXPECT_EQ(uploads, 2);
  EXPECT_TRUE(binder.ready());
}
