// SPDX-License-Identifier: Apache-2.0
/// \file
/// Whole files.

#include "Files.h"

#include "Gpu.h"

#include <fmt/format.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <unistd.h>

using namespace megalith::bench;
namespace fs = std::filesystem;

std::string megalith::bench::readWholeFile(const std::string &path) {
  std::ifstream file(path, std::ios::binary);
  std::string text{std::istreambuf_iterator<char>(file), {}};
  if (!file)
    throw BenchError(fmt::format("cannot read '{}'", path));
  return text;
}

nlohmann::ordered_json megalith::bench::readJsonFile(const std::string &path) {
  using json = nlohmann::ordered_json;
  constexpr int kMaxDepth = 64;
  // A value's depth counts what it stands in.
  auto shallow = [&](int depth, json::parse_event_t, json &) {
    if (depth >= kMaxDepth)
      throw BenchError(fmt::format("'{}': JSON is nested deeper than {} "
                                   "levels, expected at most that",
                                   path, kMaxDepth));
    return true;
  };
  return json::parse(readWholeFile(path), shallow, false);
}

static bool writeAll(const std::string &path, const std::string &text) {
  std::ofstream file(path, std::ios::binary);
  file << text;
  file.close();
  return bool(file);
}

void megalith::bench::writeWholeFile(const std::string &path,
                                     const std::string &text) {
  if (path == "-") {
    std::fwrite(text.data(), 1, text.size(), stdout);
    if (std::fflush(stdout) != 0)
      throw BenchError("cannot write to standard output");
    return;
  }
  std::error_code none;
  fs::file_status status = fs::status(path, none);
  bool link = fs::is_symlink(fs::symlink_status(path, none));
  if (fs::is_directory(status))
    throw BenchError(fmt::format(
        "cannot write '{}': it is a folder, expected a file", path));
  // A link to nothing makes what it names.
  if (fs::exists(status) ? !fs::is_regular_file(status) : link) {
    if (!writeAll(path, text))
      throw BenchError(fmt::format("cannot write '{}'", path));
    return;
  }
  std::string target = link ? fs::canonical(path).string() : path;
  std::string beside = fmt::format("{}.{}.tmp", target, ::getpid());
  if (!writeAll(beside, text) ||
      std::rename(beside.c_str(), target.c_str()) != 0) {
    std::remove(beside.c_str());
    throw BenchError(fmt::format("cannot write '{}'", path));
  }
}
