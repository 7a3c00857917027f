// SPDX-License-Identifier: Apache-2.0
/// \file
/// Shows that the simulator catches what it is for:
///
///   sim-mutants BUNDLE EQUIVALENT [--every=N] [--jobs=N] [--only=TEXT]
///
/// Makes the kernel wrong in one place at a time (Mutants.h), and runs each
/// mutant for a history of launches under two policies. A mutant is caught
/// if it does not compile, is reported, or changes a value. EQUIVALENT lists
/// those that cannot be caught, each with the reason: "pattern | reason" a
/// line, where a pattern is a mutant's name with * for what differs from block
/// to block. Fails if any other mutant survives, or if the kernel itself does
/// not pass.

#include "Golden.h"
#include "Mutants.h"
#include "RandomBlock.h"

#include <fnmatch.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <sstream>

using namespace megalith;

namespace {

constexpr int ctas = 5;
/// The first one is long enough that a CTA attends to several runs of rows.
const std::vector<int64_t> contexts = {190, 3};
/// Outcome of a mutant, as its process's exit status.
enum Outcome { Survived = 10, Refused, Reported, Changed, TimedOut };

struct Launch {
  SimPolicy policy;
  uint64_t seed;
};
const Launch launches[] = {{SimPolicy::RoundRobin, 0}, {SimPolicy::Random, 1}};

} // namespace

static SimOptions optionsFor(const Launch &launch) {
  SimOptions options;
  options.policy = launch.policy;
  options.seed = launch.seed;
  options.maxReports = 1;
  return options;
}

/// Runs in a process of its own: a mutant may do anything.
static int judge(const Mutant &mutant, const RandomBlock &block,
                 const History &wanted, std::string &note) {
  SimCompileOptions compile;
  compile.replacements = mutant.replacements;
  auto kernel = SimKernel::compile(mutant.text, compile);
  if (!kernel) {
    note = kernel.status().message();
    return Refused;
  }
  for (const Launch &launch : launches) {
    History found = block.run(*kernel, ctas, optionsFor(launch));
    if (!found.status.ok()) {
      note = found.reports.empty() ? found.status.message()
                                   : found.reports.front().text;
      return Reported;
    }
    if (found.values != wanted.values) {
      note = "values differ";
      return Changed;
    }
  }
  return Survived;
}

static std::map<std::string, std::string> readEquivalent(const char *path) {
  std::map<std::string, std::string> reasons;
  std::istringstream stream(readText(path));
  for (std::string line; std::getline(stream, line);) {
    size_t bar = line.find(" | ");
    if (!line.empty() && line[0] != '#' && bar != std::string::npos)
      reasons[line.substr(0, bar)] = line.substr(bar + 3);
  }
  return reasons;
}

int main(int argc, char **argv) {
  if (argc < 3) {
    std::fprintf(stderr, "usage: sim-mutants BUNDLE EQUIVALENT [options]\n");
    return 2;
  }
  size_t every = 1, jobs = 2;
  std::string only;
  bool verbose = false;
  for (int i = 3; i < argc; ++i) {
    if (std::strncmp(argv[i], "--every=", 8) == 0)
      every = size_t(std::atoi(argv[i] + 8));
    else if (std::strncmp(argv[i], "--jobs=", 7) == 0)
      jobs = size_t(std::atoi(argv[i] + 7));
    else if (std::strncmp(argv[i], "--only=", 7) == 0)
      only = argv[i] + 7;
    else if (std::strcmp(argv[i], "--verbose") == 0)
      verbose = true;
    else {
      std::fprintf(stderr, "sim-mutants: error: unknown option %s\n", argv[i]);
      return 2;
    }
  }
  auto bundle = loadBundle(argv[1]);
  if (!bundle) {
    std::fprintf(stderr, "sim-mutants: error: %s\n",
                 bundle.status().message().c_str());
    return 2;
  }
  const std::string text = readText(std::string(argv[1]) + "/kernel.cu");
  std::map<std::string, std::string> equivalent = readEquivalent(argv[2]);
  RandomBlock block(*bundle, 1, contexts, 2);

  auto start = std::chrono::steady_clock::now();
  auto kernel = SimKernel::compile(text);
  History wanted;
  for (const Launch &launch : launches) {
    History found = kernel ? block.run(*kernel, ctas, optionsFor(launch))
                           : History{kernel.status(), {}, {}};
    if (!found.status.ok() ||
        (!wanted.values.empty() && found.values != wanted.values)) {
      std::fprintf(stderr, "sim-mutants: error: the kernel itself fails: %s\n",
                   found.status.ok() ? "values depend on the schedule"
                                     : found.status.message().c_str());
      return 1;
    }
    wanted = found;
  }

  std::vector<Mutant> mutants;
  size_t number = 0;
  for (Mutant &mutant : makeMutants(text))
    if (mutant.name.find(only) != std::string::npos && number++ % every == 0)
      mutants.push_back(std::move(mutant));

  struct Running {
    size_t index;
    int output;
  };
  std::map<pid_t, Running> running;
  std::map<int, size_t> counts;
  size_t next = 0, wrong = 0, listed = 0;
  while (next < mutants.size() || !running.empty()) {
    while (next < mutants.size() && running.size() < jobs) {
      int ends[2];
      if (::pipe(ends) != 0)
        return 2;
      std::fflush(stdout);
      pid_t child = ::fork();
      if (child == 0) {
        ::alarm(300);
        std::string note;
        int outcome = judge(mutants[next], block, wanted, note);
        note = note.substr(0, 4000);
        if (::write(ends[1], note.data(), note.size()) < 0)
          outcome = 1;
        ::_exit(outcome);
      }
      ::close(ends[1]);
      running[child] = {next++, ends[0]};
    }
    int status = 0;
    pid_t child = ::wait(&status);
    auto at = running.find(child);
    if (at == running.end())
      continue;
    char buffer[4096];
    ssize_t got = ::read(at->second.output, buffer, sizeof buffer);
    ::close(at->second.output);
    std::string note(buffer, size_t(std::max<ssize_t>(got, 0)));
    const Mutant &mutant = mutants[at->second.index];
    running.erase(at);
    const int outcome = WIFEXITED(status)             ? WEXITSTATUS(status)
                        : WTERMSIG(status) == SIGALRM ? TimedOut
                                                      : Changed;
    if (!WIFEXITED(status))
      note = "killed by signal " + std::to_string(WTERMSIG(status));
    ++counts[outcome];
    auto reason = equivalent.begin();
    while (reason != equivalent.end() &&
           ::fnmatch(reason->first.c_str(), mutant.name.c_str(), 0) != 0)
      ++reason;
    const char *verdict = outcome == Refused    ? "refused"
                          : outcome == Reported ? "reported"
                          : outcome == Changed  ? "changed"
                          : outcome == TimedOut ? "timed out"
                                                : "survived";
    if (outcome == Survived && reason != equivalent.end()) {
      verdict = "equivalent";
      ++listed;
    } else if (outcome != Refused && outcome != Reported &&
               outcome != Changed) {
      ++wrong;
    }
    std::string shown = verbose
                            ? "\n  " + note
                            : note.substr(0, note.find('\n')).substr(0, 110);
    std::printf("%s: %s%s%s\n", mutant.name.c_str(), verdict,
                shown.empty() ? "" : ": ", shown.c_str());
  }
  std::printf(
      "%zu mutants: %zu reported, %zu changed values, %zu refused, %zu "
      "equivalent, %zu wrong; %.0f s\n",
      mutants.size(), counts[Reported], counts[Changed], counts[Refused],
      listed, wrong,
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start)
          .count());
  return wrong != 0;
}
