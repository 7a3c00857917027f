// SPDX-License-Identifier: Apache-2.0

#include "IdiomSections.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>

namespace {

constexpr size_t values = 2048; // kValues
constexpr size_t threads = 512; // of the grid
constexpr size_t ctaThreads = 128, ctas = 4;
constexpr size_t languageWords = 25, functionWords = 5;

float number(uint32_t bits) {
  float value;
  std::memcpy(&value, &bits, 4);
  return value;
}
uint32_t bits(float value) {
  uint32_t word;
  std::memcpy(&word, &value, 4);
  return word;
}

//===----------------------------------------------------------------------===//
// Inputs
//===----------------------------------------------------------------------===//

struct Run {
  const char *name;
  size_t count;
};
// Runs of the input, all multiples of four words.
const Run runs[] = {
    {"Floats", values},     {"Pairs", values},
    {"Tiny", values},       {"Words", values},
    {"Whole", threads * 6}, {"WholeSums", threads * 4},
    {"Unit", threads * 6},  {"UnitSums", threads * 4},
    {"Edge", threads * 6},  {"EdgeSums", threads * 4},
    {"Plain", threads * 3},
};

size_t place(const std::string &name) {
  size_t at = 0;
  for (const Run &run : runs) {
    if (run.name == name)
      break;
    at += run.count;
  }
  return at;
}

/// splitmix64.
class Random {
public:
  explicit Random(uint64_t seed) : state(seed) {}
  uint32_t word() {
    uint64_t z = state += 0x9e3779b97f4a7c15;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
    z = (z ^ z >> 27) * 0x94d049bb133111eb;
    return uint32_t(z >> 32 ^ z);
  }
  uint32_t below(uint32_t end) { return word() % end; }
  /// In [-size, size).
  float real(float size) { return (float(word()) * 0x1p-31f - 1) * size; }

private:
  uint64_t state;
};

/// f32 numbers on which rounding to bf16 could go wrong.
const uint32_t oddFloats[] = {
    0x00000000, 0x80000000, 0x00000001, 0x80000001, 0x00007fff, 0x00008000,
    0x00008001, 0x00018000, 0x007fffff, 0x007f8000, 0x00800000, 0x3f808000,
    0x3f818000, 0x3f807fff, 0x3f808001, 0x3f80ffff, 0x7f7fffff, 0xff7fffff,
    0x7f7f8000, 0x7f7f7fff, 0xff7f8000, 0x7f800000, 0xff800000, 0x7f800001,
    0xff800001, 0x7fc00000, 0xffc00000, 0x7fffffff, 0xffffffff, 0x7fa1a1a1};

uint32_t someFloat(Random &random, size_t index) {
  if (index < std::size(oddFloats))
    return oddFloats[index];
  const uint32_t word = random.word();
  switch (index % 4) {
  case 0: // halfway between two bf16
    return (word & 0xffff0000) | 0x8000;
  case 1: // and next to it
    return ((word & 0xffff0000) | 0x8000) + (word & 1 ? 1 : -1);
  case 2: // subnormal
    return word & 0x807fffff;
  default:
    return word;
  }
}

uint32_t someBf16(Random &random) {
  static const uint16_t odd[] = {0x0000, 0x8000, 0x0001, 0x8001, 0x007f,
                                 0x0080, 0x7f7f, 0xff7f, 0x7f80, 0xff80,
                                 0x7f81, 0x7fc0, 0xffff, 0x000f, 0x00f0};
  const uint32_t word = random.word();
  if (word % 16 == 0)
    return odd[(word >> 8) % std::size(odd)];
  if (word % 4 == 1)
    return word >> 16;
  // Within 2^8 of each other, so that both operands of a difference matter.
  return (word >> 16 & 0x807f) | (123 + (word >> 4) % 8) << 7;
}

/// Products of two are subnormal or close.
uint32_t tinyBf16(Random &random) {
  const uint32_t word = random.word(), rest = word >> 16 & 0x807f;
  if (word % 8 == 0)
    return rest;
  if (word % 8 == 1)
    return rest | (230 + (word >> 4) % 24) << 7;
  return rest | (48 + (word >> 4) % 20) << 7;
}

uint32_t toBf16(float value) { return bits(value) >> 16; }

} // namespace

Words idiomInput(uint64_t launch) {
  Random random(launch + 1);
  Words input;
  auto fill = [&](size_t count, auto &&word) {
    for (size_t i = 0; i < count; ++i)
      input.push_back(word(i));
  };
  auto pairs = [&](size_t count, auto &&half) {
    fill(count, [&](size_t) {
      const uint32_t low = half();
      return low | half() << 16;
    });
  };
  fill(values, [&](size_t i) { return someFloat(random, i); });
  pairs(values, [&] { return someBf16(random); });
  pairs(values, [&] { return tinyBf16(random); });
  fill(values, [&](size_t) { return random.word(); });
  // Whole numbers: every sum is exact.
  pairs(threads * 6, [&] { return toBf16(float(int(random.below(17)) - 8)); });
  fill(threads * 4,
       [&](size_t) { return bits(float(int(random.below(2001)) - 1000)); });
  pairs(threads * 6, [&] { return toBf16(random.real(1)); });
  fill(threads * 4, [&](size_t) { return bits(random.real(1)); });
  // Few that are not zero, those with infinities, NaN and subnormals.
  static const uint16_t edge[] = {0x7f80, 0xff80, 0x7fc0, 0x0001, 0x807f,
                                  0x0080, 0x3f80, 0xc000, 0x0013, 0x3f80};
  pairs(threads * 6, [&]() -> uint32_t {
    return random.below(6) ? 0 : edge[random.below(std::size(edge))];
  });
  fill(threads * 4,
       [&](size_t) -> uint32_t { return random.below(8) ? 0 : bits(1.0f); });
  fill(threads * 3, [&](size_t) {
    const float value = random.real(4);
    return bits(value + (value < 0 ? -0.01f : 0.01f));
  });
  return input;
}

size_t idiomInputWords() { return place(""); }

//===----------------------------------------------------------------------===//
// What the sections must hold
//===----------------------------------------------------------------------===//

namespace {

double wide(uint32_t half) { return number(half << 16); }

/// The closest bf16, the even one of two; by counting quanta of the result.
uint32_t nearest(double value) {
  if (std::isnan(value))
    return 0x7fff;
  const uint32_t sign = std::signbit(value) ? 0x8000 : 0;
  const double size = std::fabs(value);
  if (size >= std::ldexp(2 - 0x1p-8, 127))
    return sign | 0x7f80;
  const int exponent = size == 0 ? -126 : std::max(std::ilogb(size), -126);
  const double quantum = std::ldexp(1.0, exponent - 7);
  return sign | bits(float(std::nearbyint(size / quantum) * quantum)) >> 16;
}

/// A word for each index.
std::function<Words(const Words &)>
words(size_t count, std::function<uint32_t(const Words &, size_t)> word) {
  return [=](const Words &in) {
    Words out(count);
    for (size_t i = 0; i < count; ++i)
      out[i] = word(in, i);
    return out;
  };
}

/// The same operation on both halves of pair i and its partner of the run.
std::function<Words(const Words &)> halves(const char *run,
                                           double (*op)(double, double)) {
  const size_t at = place(run);
  return words(values, [=](const Words &in, size_t i) {
    const uint32_t a = in[at + i], b = in[at + (i * 7 + 1) % values];
    return nearest(op(wide(a & 0xffff), wide(b & 0xffff))) |
           nearest(op(wide(a >> 16), wide(b >> 16))) << 16;
  });
}

/// d += a b by PTX ISA, "Matrix Fragments for mma.m16n8k16".
std::function<Words(const Words &)> mma(const char *run) {
  const size_t matrix = place(run), sums = place(std::string(run) + "Sums");
  return [=](const Words &in) {
    Words out(threads * 4);
    for (size_t warp = 0; warp < threads / 32; ++warp) {
      double a[16][16], b[16][8];
      for (size_t lane = 0; lane < 32; ++lane) {
        const uint32_t *own = &in[matrix + (warp * 32 + lane) * 6];
        const size_t group = lane / 4, member = lane % 4;
        for (size_t i = 0; i < 8; ++i)
          a[i < 2 || (i >= 4 && i < 6) ? group : group + 8]
           [member * 2 + (i & 1) + (i >= 4 ? 8 : 0)] =
               wide(own[i / 2] >> 16 * (i & 1) & 0xffff);
        for (size_t i = 0; i < 4; ++i)
          b[member * 2 + (i & 1) + (i >= 2 ? 8 : 0)][group] =
              wide(own[4 + i / 2] >> 16 * (i & 1) & 0xffff);
      }
      for (size_t lane = 0; lane < 32; ++lane)
        for (size_t i = 0; i < 4; ++i) {
          const size_t row = lane / 4 + (i < 2 ? 0 : 8);
          const size_t column = lane % 4 * 2 + (i & 1);
          const size_t at = (warp * 32 + lane) * 4 + i;
          double sum = number(in[sums + at]);
          for (size_t k = 0; k < 16; ++k)
            sum += a[row][k] * b[k][column];
          out[at] = bits(float(sum));
        }
    }
    return out;
  };
}

Words ldmatrix(const Words &in) {
  Words out(threads * 8);
  for (size_t i = 0; i < out.size(); ++i) {
    const size_t lane = i / 8 % 32, warp = i / 256, matrix = i % 4;
    for (size_t half = 0; half < 2; ++half) {
      size_t row = lane / 4, column = lane % 4 * 2 + half;
      // Transposed: the lane's column is a row of the memory.
      if (i % 8 >= 4)
        std::swap(row, column);
      const size_t line = ((matrix * 8 + row) * 5 + 3) % 32;
      const uint32_t pair =
          in[place("Words") + warp * 128 + line * 4 + column / 2];
      out[i] |= (pair >> 16 * (column & 1) & 0xffff) << 16 * half;
    }
  }
  return out;
}

/// CpAsync: a word of the thread's own first copy, one of its second, and one
/// of another thread's.
uint32_t copies(const Words &in, size_t i) {
  const size_t id = i / 3, lane = id % 32;
  switch (i % 3) {
  case 0:
    return in[place("Words") + id * 4 + lane % 4];
  case 1:
    return lane % 3 != 0 ? in[place("Plain") + id / 4 * 4 + lane % 4] : 0;
  default:
    const size_t other = (id % ctaThreads + 33) % ctaThreads;
    return in[place("Words") + (id / ctaThreads * ctaThreads + other) * 4];
  }
}

uint32_t half(const uint32_t *words, size_t index) {
  return words[index / 2] >> 16 * (index & 1) & 0xffff;
}

Words constants(const Words &in) {
  const uint32_t *run = &in[place("Words")];
  Words out;
  for (size_t id = 0; id < threads; ++id) {
    out.insert(out.end(), run + id * 4 % values, run + id * 4 % values + 4);
    out.insert(out.end(), run + id * 2, run + id * 2 + 2);
    out.push_back(half(run, id));
    out.push_back(run[id]);
    const size_t last = values - 4 - id * 4 % values;
    out.insert(out.end(), run + last, run + last + 4);
  }
  return out;
}

Words others(const Words &in) {
  const uint32_t *run = &in[place("Words")];
  Words out;
  for (size_t id = 0; id < threads; ++id) {
    const uint32_t *next = run + (id + ctaThreads) % threads * 4;
    const uint32_t *second = run + (id + 2 * ctaThreads) % threads * 4;
    out.insert(out.end(), next, next + 4);
    out.insert(out.end(), second, second + 4);
    out.push_back(next[1]);
    out.push_back(half(next, 5));
    out.push_back(next[3]);
  }
  return out;
}

uint32_t counter(const Words &in, size_t id) {
  return in[place("Words") + (id + ctaThreads) % threads] + 1;
}

uint32_t barrier(const Words &in, size_t) {
  uint32_t sum = 0;
  for (size_t i = 0; i < 4 * ctas; ++i)
    sum = sum * 31 + in[place("Words") + i];
  return sum;
}

uint32_t stream(const Words &in, size_t index) {
  const size_t id = index / 2, bursts = 7;
  uint32_t sum = 0, pending = 0;
  for (size_t burst = 0; burst < bursts; ++burst) {
    pending = pending * 4 + (burst + 1 < bursts ? 2 : 1);
    const size_t length = (32 + 16 * burst % 112) / 4;
    sum =
        sum * 31 +
        in[place("Words") + (id / 32 * 13 + burst * 7) * 4 + id % 32 % length];
  }
  return index % 2 ? pending : sum;
}

uint32_t lend(const Words &in, size_t index) {
  const size_t id = index / 2, at = place("Words");
  if (index % 2)
    return in[at + id / 32 * 32 + 31 - id % 32];
  // Word 255 - t of the CTA's slots is the second half's.
  const size_t thread = ctaThreads - 1 - id % ctaThreads;
  return ~in[at + id / ctaThreads * ctaThreads + thread];
}

Words language(const Words &in) {
  const uint32_t *run = &in[place("Words")], *plain = &in[place("Plain")];
  Words out;
  for (size_t id = 0; id < threads; ++id) {
    const uint32_t *warp = run + id / 32 * 32, word = run[id];
    const uint32_t next = run[id + threads];
    const size_t lane = id % 32;
    auto put = [&](uint32_t value) { out.push_back(value); };
    put(warp[(lane * 7 + 3) % 32]);
    put(warp[lane / 8 * 8 + 5]);
    put(warp[lane < 3 ? lane : lane - 3]);
    put(warp[lane % 8 < 3 ? lane : lane - 3]);
    put(warp[lane + 5 > 31 ? lane : lane + 5]);
    put(warp[lane % 16 + 2 > 15 ? lane : lane + 2]);
    put(warp[lane ^ 9]);
    put(warp[lane == 31 ? lane : lane + 1]);
    uint32_t votes = 0, any = 0;
    for (size_t i = 0; i < 32; ++i) {
      votes |= (warp[i] & 1) << i;
      any |= warp[i] % 61 == 0;
    }
    put(votes);
    put(any);
    put(!any);
    uint32_t set = 0, first = 0, leading = 32;
    for (uint32_t i = 0; i < 32; ++i) {
      set += word >> i & 1;
      if (first == 0 && i >= 8 && (word >> i & 1))
        first = i + 1;
      if (word >> lane >> i & 1)
        leading = 31 - i;
    }
    put(set);
    put(first);
    put(leading);
    const uint64_t both = uint64_t(next) << 32 | word;
    put(uint32_t((both >> 48 & 0xff) | (both >> 8 & 0xff) << 8 |
                 (both >> 16 & 0xff) << 16 | (both >> 40 & 0xff) << 24));
    put(int32_t(word) < int32_t(next) ? word : next);
    put(word > next ? word : next);
    const float a = number(plain[id]), b = number(plain[threads + id]);
    const float c = number(plain[2 * threads + id]);
    // Sums and products of two f32 are exact in f64, or close enough that a
    // second rounding changes nothing.
    put(bits(float(double(a) + double(b))));
    put(bits(float(double(a) * double(b))));
    put(bits(float(double(a) / double(b))));
    put(bits(std::fma(a, b, c)));
    put(bits(float(std::sqrt(double(std::fabs(a))))));
    put(bits(std::max(a, std::min(b, c))));
    put(bits(float(std::fma(double(a), double(b), double(c)))));
    put(bits(float(std::nearbyint(double(a) * 100))));
  }
  return out;
}

Words functions(const Words &in) {
  Words out;
  for (size_t id = 0; id < threads; ++id) {
    const float a = number(in[place("Plain") + id]);
    const double x = a, tens = double(a * 10);
    for (double value : {std::exp(tens), std::exp(tens), std::tanh(x),
                         std::log1p(std::fabs(x)), 1 / std::sqrt(std::fabs(x))})
      out.push_back(bits(float(value)));
  }
  return out;
}

std::vector<Section> makeSections() {
  auto run = [](const char *name) {
    return [at = place(name)](const Words &in, size_t i) { return in[at + i]; };
  };
  auto pair = run("Pairs"), value = run("Floats");
  std::vector<Section> sections = {
      {"Widen", values, Match::Bits, 0,
       words(values, [=](auto &in, size_t i) { return pair(in, i) << 16; })},
      {"Round", values, Match::Bits, 0,
       words(values, [=](auto &in,
                         size_t i) { return nearest(number(value(in, i))); })},
      {"RoundBf16", values, Match::Bits, 0,
       words(values,
             [=](auto &in, size_t i) {
               return nearest(number(value(in, i))) << 16;
             })},
      {"Pack", values, Match::Bits, 0,
       words(values,
             [=](auto &in, size_t i) {
               return nearest(number(value(in, i))) |
                      nearest(number(value(in, (i * 7 + 1) % values))) << 16;
             })},
      {"Sub", values, Match::Bits, 0,
       halves("Pairs", [](double a, double b) { return a - b; })},
      {"Mul", values, Match::Bits, 0,
       halves("Pairs", [](double a, double b) { return a * b; })},
      {"MulTiny", values, Match::Bits, 0,
       halves("Tiny", [](double a, double b) { return a * b; })},
      {"Low", values, Match::Bits, 0,
       words(values,
             [=](auto &in, size_t i) {
               return (pair(in, i) & 0xffff) | pair(in, i) << 16;
             })},
      {"High", values, Match::Bits, 0,
       words(values,
             [=](auto &in, size_t i) {
               return (pair(in, i) & 0xffff0000) | pair(in, i) >> 16;
             })},
      {"Divide", values * 2, Match::Bits, 0,
       words(values * 2,
             [=, tiny = run("Tiny")](auto &in, size_t i) {
               const uint32_t at = uint32_t(i / 2), n = pair(in, at);
               const uint32_t d = tiny(in, at) % 1000 + 1;
               const uint32_t limit = std::min(d << 20, 0x7fffffffu) - 1;
               if (i % 2 == 0)
                 return n % limit / d;
               return (n % (limit / d) * d + d * (at % 2) - at % 2) / d;
             })},
      {"MmaWhole", threads * 4, Match::Value, 0, mma("Whole")},
      // Sixteen products and a sum of at most 1 each. The tensor core keeps at
      // least 23 bits below the largest and cuts off the rest: 17 * 2^-19 at
      // most, since no partial sum is above 17 < 2^5; the twin rounds sixteen
      // times, by 2^-20 each.
      {"MmaUnit", threads * 4, Match::Within, 0x1p-14, mma("Unit")},
      {"MmaEdge", threads * 4, Match::Value, 0, mma("Edge")},
      {"Ldmatrix", threads * 8, Match::Bits, 0, ldmatrix},
      {"Copies", threads * 3, Match::Bits, 0, words(threads * 3, copies)},
      {"Constants", threads * 12, Match::Bits, 0, constants},
      {"Others", threads * 11, Match::Bits, 0, others},
      {"Counter", threads, Match::Bits, 0, words(threads, counter)},
      {"Barrier", threads, Match::Bits, 0, words(threads, barrier)},
      {"Stream", threads * 2, Match::Bits, 0, words(threads * 2, stream)},
      {"Lend", threads * 2, Match::Bits, 0, words(threads * 2, lend)},
      {"Stamps", ctas * 5, Match::Bits, 0,
       words(ctas * 5, [](auto &, size_t i) { return uint32_t(i % 5 >= 2); })},
      {"Language", threads * languageWords, Match::Bits, 0, language},
      // The CUDA C++ Programming Guide's table of maximum errors has 2 for
      // expf, tanhf and rsqrtf, 1 for log1pf and exp.
      {"Functions", threads * functionWords, Match::Ulps, 3, functions},
  };
  size_t at = 0;
  for (Section &section : sections) {
    section.first = at;
    at += section.count;
  }
  return sections;
}

/// Position among the f32 numbers, in order.
int64_t rank(uint32_t bits) {
  return bits & 0x80000000 ? -int64_t(bits & 0x7fffffff) : int64_t(bits);
}

bool agree(const Section &section, uint32_t found, uint32_t wanted) {
  if (found == wanted)
    return true;
  const double a = number(found), b = number(wanted);
  switch (section.match) {
  case Match::Bits:
    return false;
  case Match::Value:
    return a == b || (std::isnan(a) && std::isnan(b));
  case Match::Within:
    return std::fabs(a - b) <= section.bound;
  case Match::Ulps:
    return std::fabs(double(rank(found) - rank(wanted))) <= section.bound;
  }
  return false;
}

} // namespace

const std::vector<Section> &idiomSections() {
  static const std::vector<Section> sections = makeSections();
  return sections;
}

size_t idiomOutputWords() {
  const Section &last = idiomSections().back();
  return last.first + last.count;
}

std::string idiomConstants() {
  std::string text = "constexpr int kValues = " + std::to_string(values) +
                     ", kLanguage = " + std::to_string(languageWords) +
                     ", kFunctions = " + std::to_string(functionWords) + ";\n";
  for (const Run &run : runs)
    text += "constexpr int kIn" + std::string(run.name) + " = " +
            std::to_string(place(run.name)) + ";\n";
  for (const Section &section : idiomSections())
    text += "constexpr int kOut" + section.name + " = " +
            std::to_string(section.first) + ";\n";
  return text;
}

std::string compareIdioms(const Words &found, const Words &wanted) {
  std::string text;
  for (const Section &section : idiomSections()) {
    size_t wrong = 0, first = 0;
    for (size_t i = section.count; i-- > 0;)
      if (!agree(section, found[section.first + i],
                 wanted[section.first + i])) {
        ++wrong;
        first = i;
      }
    if (wrong == 0)
      continue;
    char line[200];
    std::snprintf(
        line, sizeof line,
        "%s: %zu of %zu words differ, first word %zu: %08x (%g), "
        "expected %08x (%g)\n",
        section.name.c_str(), wrong, section.count, first,
        found[section.first + first], number(found[section.first + first]),
        wanted[section.first + first], number(wanted[section.first + first]));
    text += line;
  }
  return text;
}

Words expectedIdioms(const Words &input) {
  Words all;
  for (const Section &section : idiomSections()) {
    Words part = section.expected(input);
    all.insert(all.end(), part.begin(), part.end());
  }
  return all;
}
