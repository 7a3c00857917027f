// SPDX-License-Identifier: Apache-2.0
/// \file
/// Whole files.

#ifndef MEGALITH_TOOLS_BENCH_FILES_H
#define MEGALITH_TOOLS_BENCH_FILES_H

#include <nlohmann/json.hpp>

#include <string>

namespace megalith::bench {

/// Throws BenchError.
std::string readWholeFile(const std::string &path);

/// What stands in a file: a discarded value if it is no JSON. nlohmann frees
/// and prints a value by recursion, so one of more than 64 levels is refused
/// while it is read. Throws BenchError.
nlohmann::ordered_json readJsonFile(const std::string &path);

/// Writes beside the target and renames, so that the file appears whole; what
/// a link names is replaced, a device or a pipe is written as it is, and "-" is
/// standard output. Throws BenchError.
void writeWholeFile(const std::string &path, const std::string &text);

} // namespace megalith::bench

#endif // MEGALITH_TOOLS_BENCH_FILES_H
