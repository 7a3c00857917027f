// SPDX-License-Identifier: Apache-2.0

#include "KernelText.h"

#include "Error.h"

#include <algorithm>
#include <cctype>
#include <regex>
#include <sstream>

using namespace megalith;
using namespace megalith::sim;

static bool startsWith(const std::string &text, const char *prefix) {
  return text.rfind(prefix, 0) == 0;
}

static bool isWord(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) || c == '_';
}

/// The identifier that ends before `end`, past spaces; may be empty.
static std::string wordBefore(const std::string &text, size_t end) {
  while (end > 0 && text[end - 1] == ' ')
    --end;
  size_t begin = end;
  while (begin > 0 && isWord(text[begin - 1]))
    --begin;
  return text.substr(begin, end - begin);
}

/// Collects the fenced idioms' names and instructions.
static void readIdioms(KernelText &kernel) {
  static const std::regex title(R"(//===-+ (\S+) -+===//)");
  bool fenced = false, inDeclaration = false, inGroup = false;
  std::string structName, function;
  int index = 0;
  std::smatch match;
  for (const std::string &line : kernel.lines) {
    if (startsWith(line, "#ifndef MEGA_HOST_IDIOMS"))
      fenced = true;
    if (startsWith(line, "#endif // MEGA_HOST_IDIOMS"))
      return;
    if (!fenced)
      continue;
    if (std::regex_match(line, match, title)) {
      kernel.idioms.push_back(match[1]);
      structName.clear();
      continue;
    }
    if (!line.empty() && line[0] != ' ' && line[0] != '/' &&
        line.find("struct ") != std::string::npos && line.back() == '{') {
      structName = wordBefore(line, line.find('{')) + "::";
      continue;
    }
    if (startsWith(line, "};"))
      structName.clear();
    inDeclaration |= line.find("__device__") != std::string::npos;
    size_t open = line.find('(');
    if (inDeclaration && open != std::string::npos) {
      function = structName + wordBefore(line, open);
      index = 0;
      inDeclaration = false;
    }
    for (const char *call : {"__syncthreads", "__syncwarp"})
      if (line.find(std::string(call) + "(") != std::string::npos)
        kernel.instructions.push_back({function, index, call});
    size_t at = line.find("asm");
    const bool starts =
        at != std::string::npos && (at == 0 || !isWord(line[at - 1]));
    if (!starts && !inGroup)
      continue;
    size_t quote = line.find('"', starts ? at : 0);
    if (quote == std::string::npos)
      continue;
    // A group in braces declares registers first.
    inGroup = line[quote + 1] == '{';
    if (inGroup)
      continue;
    size_t end = line.find_first_of(" ;\"", quote + 1);
    kernel.instructions.push_back(
        {function, index++, line.substr(quote + 1, end - quote - 1)});
  }
}

/// Finds `__global__ ... name(const Type parameter)`.
static void readEntry(KernelText &kernel, const std::string &text) {
  static const std::regex signature(
      R"(__global__\s+void\s+(?:__launch_bounds__\([^)]*\)\s*)?(\w+)\s*\(\s*const\s+(?:__grid_constant__\s+)?(\w+)\s)");
  size_t at = text.rfind("__global__");
  std::smatch match;
  std::string tail = at == std::string::npos ? "" : text.substr(at);
  if (!std::regex_search(tail, match, signature))
    fail(MEGALITH_BAD_FORMAT,
         "kernel text has no __global__ function with one const parameter");
  kernel.entry = match[1];
  kernel.parameter = match[2];
}

/// The schedule says where each phase begins, and names each of its stages in a
/// comment in front of where that begins.
static void readPhases(KernelText &kernel) {
  static const std::regex phase(R"(\s*mega::atPhase\((\d+)\);)");
  static const std::regex stage(R"(\s*mega::atStage\(\d+\);)");
  static const std::regex name(R"(\s*// (.*))");
  std::smatch match;
  std::string before;
  bool inSchedule = false;
  for (const std::string &line : kernel.lines) {
    if (std::regex_match(line, match, phase)) {
      // Others than the schedule's come behind it.
      const size_t number = std::stoull(match[1]);
      inSchedule = number >= kernel.phases.size();
      if (number > kernel.phases.size())
        fail(MEGALITH_BAD_FORMAT, "kernel text's phases are not in order");
      if (inSchedule)
        kernel.phases.emplace_back();
    } else if (inSchedule && std::regex_match(line, stage) &&
               std::regex_match(before, match, name)) {
      kernel.phases.back().push_back(match[1]);
    }
    before = line;
  }
}

/// The table of operands names the counters among them by what they order.
static void readCounters(KernelText &kernel) {
  static const std::regex row(
      R"(\s*mega::inWorkspace\((\d+)\), // (.* -> .*))");
  std::smatch match;
  for (const std::string &line : kernel.lines)
    if (line.find(" -> ") != std::string::npos &&
        std::regex_match(line, match, row)) {
      std::string &names = kernel.counters[std::stoull(match[1])];
      if ((" or " + names + " or ").find(" or " + match[2].str() + " or ") ==
          std::string::npos)
        names += (names.empty() ? "" : " or ") + match[2].str();
    }
}

KernelText megalith::sim::readKernelText(const std::string &text) {
  KernelText kernel;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);)
    kernel.lines.push_back(line);
  readIdioms(kernel);
  readEntry(kernel, text);
  readPhases(kernel);
  readCounters(kernel);
  return kernel;
}
