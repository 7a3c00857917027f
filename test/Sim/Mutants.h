// SPDX-License-Identifier: Apache-2.0
/// \file
/// Kernels with one synchronisation, count or address made wrong.

#ifndef MEGA_TEST_SIM_MUTANTS_H
#define MEGA_TEST_SIM_MUTANTS_H

#include <map>
#include <string>
#include <vector>

/// One mutant: the emitted text or a twin with one edit.
struct Mutant {
  /// Kind, place and number, such as "drop-syncthreads quantGemv #2". Stable as
  /// long as the code around the place is.
  std::string name;
  std::string text;
  std::map<std::string, std::string> replacements;
};

/// All mutants of a kernel, in the order of its text.
std::vector<Mutant> makeMutants(const std::string &text);

#endif
