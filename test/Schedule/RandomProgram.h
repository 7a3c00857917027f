// SPDX-License-Identifier: Apache-2.0
/// \file
/// Random level-1 programs: stages of all kinds that pass vectors on, write
/// buffers again, and carry state.

#ifndef MEGA_TEST_SCHEDULE_RANDOMPROGRAM_H
#define MEGA_TEST_SCHEDULE_RANDOMPROGRAM_H

#include <cstdint>
#include <string>

namespace mega::test {

/// The text of a module with one program of `stages` stages, unpartitioned; the
/// same for the same seed.
std::string randomProgram(uint64_t seed, int stages);

} // namespace mega::test

#endif // MEGA_TEST_SCHEDULE_RANDOMPROGRAM_H
