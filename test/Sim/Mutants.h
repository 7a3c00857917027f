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
  /// long as the code of that function or stage is.
  std::string name;
  std::string text;
  std::map<std::string, std::string> replacements;
};

/// All mutants of a kernel in the form for a compute capability (90 for sm_90),
/// kind by kind. `missing` gets what was to be changed
/// in a twin and is not there, so that no kind gets lost when a twin changes.
std::vector<Mutant> makeMutants(const std::string &text, int capability,
                                std::vector<std::string> &missing);

#endif
