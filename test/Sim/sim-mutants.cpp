// SPDX-License-Identifier: Apache-2.0
/// \file
/// Shows that the simulator catches what it is for:
///
///   sim-mutants BUNDLE EQUIVALENT [--every=N] [--jobs=N] [--only=NAME,..]
///               [--verbose] [--list]
///
/// Makes the kernel wrong in one place at a time (Mutants.h), and runs each
/// mutant for a history of launches under several policies and grids. A mutant
/// is caught if it does not compile, is reported, or changes a value.
/// EQUIVALENT lists those that cannot be caught, each with the reason: "block |
/// mutant | reason" a line, by exact name. Behind the block's name, @counters
/// stands for a schedule with counters, and @sm_80 for the form before sm_90.
/// Fails if any other mutant survives, if a listed one is caught, or if the
/// kernel itself does not pass. NAME is a mutant's, or a kind's. --list prints
/// names and runs nothing.

#include "Golden.h"
#include "Mutants.h"
#include "RandomBlock.h"

#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <map>
#include <set>
#include <sstream>

using namespace megalith;

namespace {

/// The first one is long enough that a CTA attends to several runs of rows.
const std::vector<int64_t> contexts = {190, 3};
/// Outcome of a mutant, as its process's exit status.
enum Outcome { Survived = 10, Refused, Reported, Changed, TimedOut };

struct Launch {
  int ctas;
  SimPolicy policy;
  uint64_t seed;
};
/// Several grids, lest a CTA happens to read only what it wrote itself. With
/// one CTA, every warp's run is as long as it gets.
const Launch launches[] = {{5, SimPolicy::RoundRobin, 0},
                           {17, SimPolicy::Random, 1},
                           {1, SimPolicy::RoundRobin, 0}};
/// A count that is one too low teaches too little only to who meets the others
/// first, and only of a CTA that adds no more than one. If those launches do
/// not find a mutant of these kinds, these do: one CTA after the other comes
/// last, of few, and of so many that each has almost nothing to do. What a wait
/// teaches depends on no schedule otherwise.
const std::set<std::string> countsTooEarly = {"arrive-twice", "signal-twice",
                                              "target-lower"};
const struct {
  int ctas, step;
} starved[] = {{7, 1}, {64, 9}};

} // namespace

static SimOptions optionsFor(const Launch &launch) {
  SimOptions options;
  options.policy = launch.policy;
  options.seed = launch.seed;
  options.maxReports = 1;
  return options;
}

/// A launch that one CTA after the other does last. Only reports count: sums of
/// other grids may be rounded otherwise.
static int starveEach(const std::shared_ptr<SimKernel> &kernel,
                      const RandomBlock &block, std::string &note) {
  for (auto [ctas, step] : starved)
    for (int cta = 0; cta < ctas; cta += step) {
      History found = block.run(
          kernel, ctas, optionsFor({ctas, SimPolicy::Starve, uint64_t(cta)}));
      if (!found.status.ok()) {
        note = found.reports.empty() ? found.status.message()
                                     : found.reports.front().text;
        return Reported;
      }
    }
  return Survived;
}

/// Runs in a process of its own: a mutant may do anything.
static int judge(const Mutant &mutant, const RandomBlock &block,
                 const RandomBlock &shortBlock, SimCompileOptions compile,
                 const std::vector<History> &right, std::string &note) {
  compile.replacements = mutant.replacements;
  auto kernel = SimKernel::compile(mutant.text, compile);
  if (!kernel) {
    note = kernel.status().message();
    return Refused;
  }
  for (size_t i = 0; i < std::size(launches); ++i) {
    const Launch &launch = launches[i];
    History found = block.run(*kernel, launch.ctas, optionsFor(launch));
    if (!found.status.ok()) {
      note = found.reports.empty() ? found.status.message()
                                   : found.reports.front().text;
      return Reported;
    }
    if (found.values != right[i].values) {
      note = "values differ";
      return Changed;
    }
  }
  if (countsTooEarly.count(mutant.name.substr(0, mutant.name.find(' '))) == 0)
    return Survived;
  return starveEach(*kernel, shortBlock, note);
}

/// Mutants that `path` lists as equivalent for `block` in a form: "",
/// "@counters", "@sm_80", or "@counters@sm_80".
static std::set<std::string> readEquivalent(const char *path,
                                            const std::string &block,
                                            const std::string &form) {
  std::set<std::string> names;
  std::istringstream stream(readText(path));
  for (std::string line; std::getline(stream, line);) {
    if (line.empty() || line[0] == '#')
      continue;
    const size_t bar = line.find(" | "), second = line.find(" | ", bar + 1);
    if (second == std::string::npos) {
      std::fprintf(stderr,
                   "sim-mutants: error: %s has '%s', expected block | mutant "
                   "| reason\n",
                   path, line.c_str());
      std::exit(2);
    }
    if (line.substr(0, bar) == block + form)
      names.insert(line.substr(bar + 3, second - bar - 3));
  }
  return names;
}

int main(int argc, char **argv) {
  if (argc < 3) {
    std::fprintf(stderr, "usage: sim-mutants BUNDLE EQUIVALENT [options]\n");
    return 2;
  }
  size_t every = 1, jobs = 2;
  std::set<std::string> only;
  bool verbose = false, list = false;
  for (int i = 3; i < argc; ++i) {
    if (std::strncmp(argv[i], "--every=", 8) == 0)
      every = size_t(std::atoi(argv[i] + 8));
    else if (std::strncmp(argv[i], "--jobs=", 7) == 0)
      jobs = size_t(std::atoi(argv[i] + 7));
    else if (std::strncmp(argv[i], "--only=", 7) == 0)
      for (std::istringstream kinds(argv[i] + 7); kinds.good();) {
        std::string kind;
        std::getline(kinds, kind, ',');
        only.insert(kind);
      }
    else if (std::strcmp(argv[i], "--verbose") == 0)
      verbose = true;
    else if (std::strcmp(argv[i], "--list") == 0)
      list = true;
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
  SimCompileOptions compile;
  for (const TargetDesc &target : (*bundle)->manifest.targets)
    compile.capability = std::max(compile.capability, target.capability);
  const std::set<std::string> equivalent = readEquivalent(
      argv[2], (*bundle)->manifest.block,
      std::string(text.find("mega::Counter::") == std::string::npos
                      ? ""
                      : "@counters") +
          (compile.capability < 90 ? "@sm_80" : ""));
  const RandomBlock block(*bundle, 1, contexts, 2);
  const RandomBlock shortBlock(*bundle, 1, {3}, 1);

  auto wanted = [&](const std::string &name) {
    return only.empty() || only.count(name) != 0 ||
           only.count(name.substr(0, name.find(' '))) != 0;
  };
  std::vector<Mutant> mutants;
  std::vector<std::string> missing;
  size_t number = 0;
  for (Mutant &mutant : makeMutants(text, compile.capability, missing))
    if (wanted(mutant.name) && number++ % every == 0)
      mutants.push_back(std::move(mutant));
  if (list) {
    for (const Mutant &mutant : mutants)
      std::printf("%s\n", mutant.name.c_str());
    return 0;
  }

  auto start = std::chrono::steady_clock::now();
  auto kernel = SimKernel::compile(text, compile);
  std::vector<History> right;
  for (const Launch &launch : launches) {
    History found = kernel ? block.run(*kernel, launch.ctas, optionsFor(launch))
                           : History{kernel.status(), {}, {}};
    if (!found.status.ok()) {
      std::fprintf(stderr, "sim-mutants: error: the kernel itself fails: %s\n",
                   found.status.message().c_str());
      return 1;
    }
    right.push_back(std::move(found));
  }

  for (const std::string &line : missing)
    std::printf("%s\n", line.c_str());
  std::set<std::string> unseen;
  if (every == 1)
    std::copy_if(equivalent.begin(), equivalent.end(),
                 std::inserter(unseen, unseen.end()), wanted);

  struct Running {
    size_t index;
    int output;
  };
  std::map<pid_t, Running> running;
  std::map<int, size_t> counts;
  size_t next = 0, wrong = 0, equivalents = 0;
  while (next < mutants.size() || !running.empty()) {
    while (next < mutants.size() && running.size() < jobs) {
      int ends[2];
      if (::pipe(ends) != 0)
        return 2;
      std::fflush(stdout);
      pid_t child = ::fork();
      if (child == 0) {
        // Of the processor, since others may use it, too; and of the clock,
        // lest a mutant sleep for good.
        const struct rlimit limit = {300, 310};
        ::setrlimit(RLIMIT_CPU, &limit);
        ::alarm(3600);
        std::string note;
        int outcome =
            judge(mutants[next], block, shortBlock, compile, right, note);
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
    const bool late = WIFSIGNALED(status) && (WTERMSIG(status) == SIGALRM ||
                                              WTERMSIG(status) == SIGXCPU ||
                                              WTERMSIG(status) == SIGKILL);
    const int outcome = WIFEXITED(status) ? WEXITSTATUS(status)
                        : late            ? TimedOut
                                          : Changed;
    if (!WIFEXITED(status))
      note = "killed by signal " + std::to_string(WTERMSIG(status));
    ++counts[outcome];
    const bool listed = equivalent.count(mutant.name) != 0;
    unseen.erase(mutant.name);
    const char *verdict = outcome == Refused    ? "refused"
                          : outcome == Reported ? "reported"
                          : outcome == Changed  ? "changed"
                          : outcome == TimedOut ? "timed out"
                                                : "survived";
    const bool caught =
        outcome == Refused || outcome == Reported || outcome == Changed;
    std::string remark;
    if (outcome == Survived && listed) {
      verdict = "equivalent";
      ++equivalents;
    } else if (!caught) {
      ++wrong;
    } else if (listed) {
      remark = " although listed as equivalent";
      ++wrong;
    }
    std::string shown = verbose
                            ? "\n  " + note
                            : note.substr(0, note.find('\n')).substr(0, 110);
    std::printf("%s: %s%s%s%s\n", mutant.name.c_str(), verdict, remark.c_str(),
                shown.empty() ? "" : ": ", shown.c_str());
  }
  for (const std::string &name : unseen)
    std::printf("%s: listed as equivalent, but there is no such mutant\n",
                name.c_str());
  wrong += unseen.size() + missing.size();
  std::printf(
      "%zu mutants: %zu reported, %zu changed values, %zu refused, %zu "
      "equivalent, %zu wrong; %.0f s\n",
      mutants.size(), counts[Reported], counts[Changed], counts[Refused],
      equivalents, wrong,
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start)
          .count());
  return wrong != 0;
}
