// SPDX-License-Identifier: Apache-2.0
/// \file
/// What test/gpu/idioms.cu reads and writes, section by section, and what each
/// word must be: worked out here from the instructions' definitions, by neither
/// of the two implementations that are compared.

#ifndef MEGA_TEST_SIM_IDIOMSECTIONS_H
#define MEGA_TEST_SIM_IDIOMSECTIONS_H

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

/// Words of the input or the output.
using Words = std::vector<uint32_t>;

/// How two implementations must agree on a word.
enum class Match {
  Bits,   ///< the same bits
  Value,  ///< the same f32 number, whatever a zero's sign; or both NaN
  Within, ///< f32 numbers at most `bound` apart
  Ulps,   ///< f32 numbers with at most `bound` numbers between them, plus one
};

/// A run of the output.
struct Section {
  std::string name; ///< kOut`name` in the text
  size_t count;     ///< words
  Match match;
  double bound;
  /// The words that the section should hold.
  std::function<Words(const Words &input)> expected;
  size_t first = 0; ///< word of the output
};

/// All sections, in the output's order.
const std::vector<Section> &idiomSections();

size_t idiomInputWords();
size_t idiomOutputWords();

/// The input of launch `number`; the same everywhere.
Words idiomInput(uint64_t number);

/// Constants that stand ahead of idioms.cu.
std::string idiomConstants();

/// How `found` departs from `wanted`, a line for each section that does;
/// empty if it agrees.
std::string compareIdioms(const Words &found, const Words &wanted);

/// All sections' expected words.
Words expectedIdioms(const Words &input);

#endif
