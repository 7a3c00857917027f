// SPDX-License-Identifier: Apache-2.0
//
// Compiled with -ffp-contract=off; see RandomInit.h for why.

#include "mega/runtime/RandomInit.h"

#include "Error.h"
#include "Parallel.h"

#include <algorithm>
#include <array>
#include <cmath>

using namespace megalith;

namespace {

/// SplitMix64's finaliser: a bijection of 64-bit words that passes for random.
inline uint64_t mix(uint64_t word) {
  word = (word ^ word >> 30) * 0xbf58476d1ce4e5b9u;
  word = (word ^ word >> 27) * 0x94d049bb133111ebu;
  return word ^ word >> 31;
}

/// exp(-y) for 0 <= y <= 16 by Taylor and ten squarings; libm's differs
/// between platforms in the last bit.
double expMinus(double y) {
  double x = -y / 1024;
  double term = 1, sum = 1;
  for (int i = 1; i <= 12; ++i) {
    term = term * x / i;
    sum += term;
  }
  for (int i = 0; i < 10; ++i)
    sum *= sum;
  return sum;
}

/// The standard normal's density.
double density(double x) {
  return 0.39894228040143267794 * expMinus(x * x / 2);
}

/// Its distribution function by Marsaglia's series; x >= 0.
double distribution(double x) {
  double term = x, sum = x;
  for (int i = 3; term > 1e-18; i += 2) {
    term = term * x * x / i;
    sum += term;
  }
  return 0.5 + density(x) * sum;
}

/// The inverse distribution at i / intervals, i = 0..intervals, the ends cut
/// at 4 sigma.
class NormalTable {
public:
  static constexpr int logIntervals = 12;
  static constexpr int intervals = 1 << logIntervals;

  NormalTable() {
    double x = 0;
    values[intervals / 2] = 0;
    for (int i = 1; i < intervals / 2; ++i) {
      // Newton from the neighbour's value; the distribution is concave here,
      // so it converges from below.
      double wanted = 0.5 + double(i) / intervals;
      for (int step = 0; step < 20; ++step)
        x += (wanted - distribution(x)) / density(x);
      setPair(i, float(x));
    }
    setPair(intervals / 2, 4.0f);
  }

  /// A normal from 32 random bits.
  float at(uint32_t bits) const {
    constexpr uint32_t fraction = 32 - logIntervals;
    float t = float(bits & ((1u << fraction) - 1)) * (1.0f / (1u << fraction));
    const float *value = &values[bits >> fraction];
    return value[0] + t * (value[1] - value[0]);
  }

private:
  void setPair(int i, float value) {
    values[size_t(intervals / 2 + i)] = value;
    values[size_t(intervals / 2 - i)] = -value;
  }
  std::array<float, intervals + 1> values;
};

const NormalTable &normalTable() {
  static const NormalTable table;
  return table;
}

/// The stream of normals of one (seed, name). Element i takes half a hash of
/// i / 2.
class Normals {
public:
  Normals(uint64_t seed, const std::string &name) : table(normalTable()) {
    uint64_t hash = 0xcbf29ce484222325u; // FNV-1a
    for (unsigned char c : name)
      hash = (hash ^ c) * 0x100000001b3u;
    key = mix(mix(seed + 0x9e3779b97f4a7c15u) ^ hash);
  }

  /// Elements [first, first + count), each times `deviation`.
  void fill(uint64_t first, uint64_t count, float deviation, float *out) const {
    uint64_t i = 0;
    if (first % 2 != 0 && count != 0)
      out[i++] = deviation * table.at(uint32_t(word(first / 2) >> 32));
    for (; i + 1 < count; i += 2) {
      uint64_t bits = word((first + i) / 2);
      out[i] = deviation * table.at(uint32_t(bits));
      out[i + 1] = deviation * table.at(uint32_t(bits >> 32));
    }
    if (i < count)
      out[i] = deviation * table.at(uint32_t(word((first + i) / 2)));
  }

private:
  uint64_t word(uint64_t counter) const {
    return mix(key + counter * 0x9e3779b97f4a7c15u);
  }
  const NormalTable &table;
  uint64_t key;
};

/// Rounds to the nearest integer, half to even, for |x| < 2^22: adding and
/// taking away 1.5 * 2^23 leaves no room for a fraction.
inline float roundEven(float x) { return (x + 12582912.0f) - 12582912.0f; }

inline float clipCode(float x) { return std::min(std::max(x, 0.0f), 15.0f); }

/// Columns that one task quantises, so that a group of them stays in cache.
constexpr int64_t stripColumns = 64;

/// A group of inputs by a strip of outputs of one expert.
struct Patch {
  int64_t expert;
  int64_t firstInput;
  int64_t firstOutput;
  int64_t columns;
};

/// Where a quantised weight goes.
struct QuantTarget {
  int64_t inputs;
  int64_t outputs;
  int64_t group;
  float deviation;
  uint8_t *codes;
  uint8_t *scales;
  uint8_t *zeros;
};

/// Draws and quantises one patch; `w` has room for group * stripColumns.
void quantisePatch(const Normals &normals, const QuantTarget &target,
                   const Patch &patch, float *w) {
  int64_t n = patch.columns;
  float low[stripColumns], high[stripColumns];
  float scale[stripColumns], zero[stripColumns];
  for (int64_t k = 0; k < target.group; ++k) {
    float *row = w + k * stripColumns;
    uint64_t first = uint64_t(
        (patch.expert * target.inputs + patch.firstInput + k) * target.outputs +
        patch.firstOutput);
    normals.fill(first, uint64_t(n), target.deviation, row);
    for (int64_t j = 0; j < n; ++j) {
      low[j] = k == 0 ? row[j] : std::min(low[j], row[j]);
      high[j] = k == 0 ? row[j] : std::max(high[j], row[j]);
    }
  }

  int64_t groupRow = patch.expert * (target.inputs / target.group) +
                     patch.firstInput / target.group;
  for (int64_t j = 0; j < n; ++j) {
    scale[j] = std::max(high[j] - low[j], 1e-8f) / 15.0f;
    zero[j] = clipCode(roundEven(-low[j] / scale[j]));
    int64_t index = groupRow * target.outputs + patch.firstOutput + j;
    uint16_t halves[2] = {toBf16(scale[j]), toBf16(zero[j])};
    std::memcpy(target.scales + 2 * index, &halves[0], 2);
    std::memcpy(target.zeros + 2 * index, &halves[1], 2);
  }

  for (int64_t k = 0; k < target.group; k += 2) {
    const float *even = w + k * stripColumns;
    const float *odd = even + stripColumns;
    uint8_t *out =
        target.codes +
        (patch.expert * (target.inputs / 2) + (patch.firstInput + k) / 2) *
            target.outputs +
        patch.firstOutput;
    for (int64_t j = 0; j < n; ++j) {
      int a = int(clipCode(roundEven(even[j] / scale[j] + zero[j])));
      int b = int(clipCode(roundEven(odd[j] / scale[j] + zero[j])));
      out[j] = uint8_t(a | b << 4);
    }
  }
}

/// A tensor of normals in BF16 or F32; `deviation` 0 makes it all ones.
Tensor fillTensor(uint64_t seed, const std::string &name, DType dtype,
                  const std::vector<int64_t> &shape, float deviation) {
  if (dtype != DType::BF16 && dtype != DType::F32)
    fail(MEGALITH_INVALID_ARGUMENT,
         "tensor {}: dtype is {}, expected BF16 or F32", quote(name),
         dtypeName(dtype));
  std::optional<uint64_t> bytes = tensorBytes(dtype, shape);
  if (!bytes)
    fail(MEGALITH_INVALID_ARGUMENT, "tensor {}: shape {} has no size",
         quote(name), shapeText(shape));
  uint8_t *out = nullptr;
  Tensor tensor = Tensor::allocate(dtype, shape, &out);
  Normals normals(seed, name);
  uint64_t width = dtypeBits(dtype) / 8;
  parallelFor(*bytes / width, 4096, 0, [&](uint64_t begin, uint64_t end) {
    float values[4096];
    if (deviation == 0)
      std::fill_n(values, end - begin, 1.0f);
    else
      normals.fill(begin, end - begin, deviation, values);
    for (uint64_t i = begin; i < end; ++i) {
      uint16_t half = toBf16(values[i - begin]);
      if (dtype == DType::BF16)
        std::memcpy(out + 2 * i, &half, 2);
      else
        std::memcpy(out + 4 * i, &values[i - begin], 4);
    }
  });
  return tensor;
}

/// Deviation of a weight that sums over `inputs`.
double projectionDeviation(int64_t inputs, Spread spread) {
  return spread == Spread::Fixed
             ? 0.02
             : 1 / std::sqrt(double(std::max<int64_t>(inputs, 1)));
}

} // namespace

Result<RandomQuant> megalith::randomQuant(uint64_t seed,
                                          const std::string &name,
                                          const std::vector<int64_t> &shape,
                                          int64_t group, unsigned threads,
                                          Spread spread) {
  return guardResult<RandomQuant>([&] {
    size_t rank = shape.size();
    std::optional<uint64_t> bytes = tensorBytes(DType::F32, shape);
    if ((rank != 2 && rank != 3) || !bytes || group <= 0 || group % 2 != 0 ||
        shape[rank - 2] % group != 0)
      fail(MEGALITH_INVALID_ARGUMENT,
           "weight {}: cannot quantise shape {} in groups of {}", quote(name),
           shapeText(shape), group);
    QuantTarget target;
    target.inputs = shape[rank - 2];
    target.outputs = shape[rank - 1];
    target.group = group;
    target.deviation = float(projectionDeviation(target.inputs, spread));
    int64_t experts = rank == 3 ? shape[0] : 1;

    RandomQuant result;
    std::vector<int64_t> dims = shape;
    dims[rank - 2] = target.inputs / 2;
    result.codes = Tensor::allocate(DType::U8, dims, &target.codes);
    dims[rank - 2] = target.inputs / group;
    result.scales = Tensor::allocate(DType::BF16, dims, &target.scales);
    result.zeros = Tensor::allocate(DType::BF16, dims, &target.zeros);

    Normals normals(seed, name);
    int64_t strips = (target.outputs + stripColumns - 1) / stripColumns;
    int64_t groups = target.inputs / group;
    parallelFor(uint64_t(experts * groups * strips), 16, threads,
                [&](uint64_t begin, uint64_t end) {
                  std::vector<float> scratch(size_t(group * stripColumns));
                  for (uint64_t i = begin; i < end; ++i) {
                    Patch patch;
                    patch.firstOutput = int64_t(i) % strips * stripColumns;
                    patch.firstInput = int64_t(i) / strips % groups * group;
                    patch.expert = int64_t(i) / strips / groups;
                    patch.columns = std::min(
                        stripColumns, target.outputs - patch.firstOutput);
                    quantisePatch(normals, target, patch, scratch.data());
                  }
                });
    return result;
  });
}

double megalith::denseDeviation(const std::vector<int64_t> &shape,
                                Spread spread) {
  return shape.size() == 3 && shape[2] <= 8
             ? 0.1
             : projectionDeviation(shape.back(), spread);
}

Result<Tensor> megalith::randomDense(uint64_t seed, const std::string &name,
                                     DType dtype,
                                     const std::vector<int64_t> &shape,
                                     Spread spread) {
  return guardResult<Tensor>([&] {
    float deviation =
        shape.size() <= 1 ? 0 : float(denseDeviation(shape, spread));
    return fillTensor(seed, name, dtype, shape, deviation);
  });
}

Result<Tensor> megalith::randomState(uint64_t seed, const std::string &name,
                                     DType dtype,
                                     const std::vector<int64_t> &shape) {
  return guardResult<Tensor>([&] {
    return fillTensor(seed, name, dtype, shape,
                      dtype == DType::F32 ? 0.05f : 0.1f);
  });
}

Result<Tensor> megalith::randomToken(uint64_t seed, const std::string &name,
                                     DType dtype,
                                     const std::vector<int64_t> &shape) {
  return guardResult<Tensor>(
      [&] { return fillTensor(seed, name, dtype, shape, 0.25f); });
}

Result<TensorMap> megalith::randomWeights(const Manifest &manifest,
                                          uint64_t seed, unsigned threads,
                                          Spread spread) {
  return guardResult<TensorMap>([&] {
    TensorMap map;
    for (const WeightDesc &weight : manifest.weights) {
      const std::vector<TensorDesc> &tensors = weight.tensors;
      if (weight.kind == WeightDesc::Kind::Dense) {
        map.tensors[tensors[0].name] = take(randomDense(
            seed, weight.name, tensors[0].dtype, tensors[0].shape, spread));
        continue;
      }
      RandomQuant quant = take(randomQuant(seed, weight.name, weight.shape,
                                           weight.group, threads, spread));
      map.tensors[tensors[0].name] = std::move(quant.codes);
      map.tensors[tensors[1].name] = std::move(quant.scales);
      map.tensors[tensors[2].name] = std::move(quant.zeros);
    }
    return map;
  });
}

Result<TensorMap> megalith::randomStates(const Manifest &manifest,
                                         uint64_t seed, int64_t rows) {
  return guardResult<TensorMap>([&] {
    TensorMap map;
    for (const StateDesc &state : manifest.states) {
      std::vector<int64_t> shape = state.shape;
      if (state.isCache())
        shape[0] = rows;
      map.tensors[state.name] =
          take(randomState(seed, state.name, state.dtype, shape));
    }
    return map;
  });
}
