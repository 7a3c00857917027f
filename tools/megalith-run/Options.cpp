// SPDX-License-Identifier: Apache-2.0
/// \file
/// The command line of megalith-run.

#include "Flags.h"

#include "mega/runtime/Simulator.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"

#include <cmath>

using namespace llvm;
using namespace mega::run;

static cl::OptionCategory category("megalith-run options");

namespace {
/// The flags as they are typed.
struct Flags {
  cl::opt<std::string> subject{cl::Positional, cl::Required,
                               cl::desc("<block.mlir | bundle directory>"),
                               cl::cat(category)};
  mega::ChoiceFlag<Options::Target> target{
      "target", cl::desc("What executes the block"),
      cl::values(clEnumValN(Options::Target::Reference, "reference",
                            "the interpreter on this host"),
                 clEnumValN(Options::Target::Cuda, "cuda",
                            "the bundle's kernel on a GPU"),
                 clEnumValN(Options::Target::Sim, "sim",
                            "the kernel's text on the simulator, on this "
                            "host")),
      cl::init(Options::Target::Reference), cl::cat(category)};
  cl::opt<std::string> bundle{"bundle",
                              cl::desc("Bundle of the compiled kernel"),
                              cl::value_desc("dir"), cl::cat(category)};
  cl::opt<std::string> block{"block",
                             cl::desc("Description of a bundle's block"),
                             cl::value_desc("file"), cl::cat(category)};
  cl::opt<std::string> check{
      "check", cl::desc("Compare with another executor: 'reference'"),
      cl::value_desc("executor"), cl::cat(category)};
  CommonFlags common{category, "random:1234"};
  cl::opt<std::string> state{"state",
                             cl::desc("State before the first step (default "
                                      "random:0)"),
                             cl::value_desc("file | random:SEED"),
                             cl::init("random:0"), cl::cat(category)};
  cl::opt<std::string> statePrefix{
      "state-prefix", cl::desc("Prefix of state names in the file"),
      cl::value_desc("text"), cl::cat(category)};
  cl::opt<std::string> input{
      "input",
      cl::desc("Hidden vectors, as step<t>/hidden_in (default random:1)"),
      cl::value_desc("file | random:SEED"), cl::init("random:1"),
      cl::cat(category)};
  cl::opt<int64_t> context{
      "context",
      cl::desc("Tokens before the first step (default: the state "
               "file's rows, or 0)"),
      cl::value_desc("n"), cl::init(-1), cl::cat(category)};
  cl::list<int64_t> contexts{
      "contexts", cl::desc("Sweep: run every context and seed"),
      cl::CommaSeparated, cl::value_desc("n,..."), cl::cat(category)};
  cl::list<uint64_t> seeds{
      "seeds", cl::desc("Sweep: state from seed s, tokens from seed s + 1"),
      cl::CommaSeparated, cl::value_desc("s,..."), cl::cat(category)};
  cl::opt<int64_t> steps{"steps", cl::desc("Tokens to run (default 1)"),
                         cl::value_desc("k"), cl::init(1), cl::cat(category)};
  cl::opt<std::string> feed{
      "feed",
      cl::desc("Next token: 'fresh' (default), or the last 'output'; the "
               "latter is reported, not judged"),
      cl::value_desc("kind"), cl::init("fresh"), cl::cat(category)};
  cl::opt<bool> noise{
      "noise",
      cl::desc("Also report how far 0.1% input noise moves the reference"),
      cl::cat(category)};
  cl::opt<int64_t> timedSteps{
      "time", cl::desc("Time this many more steps, back to back, by events"),
      cl::value_desc("k"), cl::init(0), cl::cat(category)};
  cl::opt<std::string> output{"output",
                              cl::desc("Write outputs, probes and final state"),
                              cl::value_desc("file"), cl::cat(category)};
  cl::opt<bool> relaxed{
      "relaxed",
      cl::desc("Let the reference use the relaxations that the description "
               "permits, as the kernel does"),
      cl::cat(category)};
  cl::opt<uint64_t> simSeed{"sim-seed", cl::desc("Schedule's seed (default 0)"),
                            cl::value_desc("n"), cl::init(0),
                            cl::cat(category)};
  cl::opt<std::string> simPolicy{
      "sim-policy",
      cl::desc("Who runs first: round-robin (default), reverse, random, "
               "starve or last-arriver"),
      cl::value_desc("name"), cl::init("round-robin"), cl::cat(category)};
  cl::opt<int> simSms{"sim-sms",
                      cl::desc("SMs, a CTA each (default: 16, or the "
                               "kernel's most if that is less)"),
                      cl::value_desc("n"), cl::init(0), cl::cat(category)};
  cl::opt<bool> simRaces{"sim-races",
                         cl::desc("Check every access for races (default on; "
                                  "=false is two to four times as fast)"),
                         cl::init(true), cl::cat(category)};
  cl::opt<double> minCosine{"min-cosine",
                            cl::desc("Least cosine that passes a check"),
                            cl::init(0.99999), cl::cat(category)};
  cl::opt<double> maxError{
      "max-error", cl::desc("Largest relative L2 error that passes a check"),
      cl::init(3e-3), cl::cat(category)};
  cl::opt<double> tieGap{
      "tie-gap",
      cl::desc("Largest logit gap at which another choice of experts counts "
               "as a tie, not as a failure"),
      cl::init(0.05), cl::cat(category)};
};
} // namespace

/// The output can be put where it is to go; better known before the run.
static Error checkOutput(const cl::opt<std::string> &flag) {
  const std::string &path = flag;
  if (path.empty())
    return flag.getNumOccurrences()
               ? usage("--output is empty, expected a file")
               : Error::success();
  if (sys::fs::is_directory(path))
    return usage("--output names the folder '{0}', expected a file", path);
  SmallString<128> folder = sys::path::parent_path(path);
  if (folder.empty())
    folder = ".";
  if (!sys::fs::is_directory(folder))
    return usage("--output is to go into '{0}', which is no folder", folder);
  if (sys::fs::access(folder, sys::fs::AccessMode::Write))
    return usage("--output is to go into '{0}', which cannot be written",
                 folder);
  return Error::success();
}

/// Tells a bundle from a description, and wants what the target needs.
static Error placeSubject(const Flags &flags, Options &options) {
  for (const auto *option : {&flags.block, &flags.bundle})
    if (option->getNumOccurrences() && option->empty())
      return usage("--{0} is empty, expected a {1}", option->ArgStr,
                   option == &flags.bundle ? "bundle's folder" : "file");
  // A description may come from standard input.
  if (flags.subject != "-" && !sys::fs::exists(flags.subject))
    return usage("'{0}' does not exist, expected a description (.mlir) or a "
                 "bundle's folder",
                 flags.subject.getValue());
  options.block = flags.block;
  options.bundle = flags.bundle;
  std::string &place =
      sys::fs::is_directory(flags.subject) ? options.bundle : options.block;
  if (!place.empty())
    return usage("'{0}' and '{1}' are both given, expected one {2}", place,
                 flags.subject,
                 &place == &options.bundle ? "bundle" : "description");
  place = flags.subject;
  if (options.target == Options::Target::Cuda && options.bundle.empty())
    return usage("--target=cuda has no compiled kernel, expected "
                 "--bundle=DIR");
  // The simulator takes either.
  if (options.target == Options::Target::Reference && options.block.empty())
    return usage("--target=reference has no description, expected a .mlir "
                 "file");
  if (options.check && options.block.empty())
    return usage("--check=reference has no description, expected "
                 "--block=FILE");
  return Error::success();
}

/// The contexts and seeds to run.
static Error placeCases(const Flags &flags, Options &options) {
  options.sweep = !flags.contexts.empty() || !flags.seeds.empty();
  options.contexts.assign(flags.contexts.begin(), flags.contexts.end());
  options.seeds.assign(flags.seeds.begin(), flags.seeds.end());
  if (options.sweep) {
    if (!options.state.seed || !options.input.seed)
      return usage("--contexts and --seeds want random state and input, but "
                   "'{0}' is a file",
                   options.state.seed ? options.input.path
                                      : options.state.path);
    if (!options.output.empty())
      return usage("--output is given with --contexts or --seeds, expected a "
                   "single run");
    if (!options.contexts.empty() && flags.context.getNumOccurrences())
      return usage("--context and --contexts are both given, expected one");
  }
  if (options.contexts.empty())
    options.contexts = {flags.context};
  if (options.seeds.empty())
    options.seeds = {options.state.seed.value_or(0)};
  bool given = flags.context.getNumOccurrences() || !flags.contexts.empty();
  for (int64_t &context : options.contexts) {
    if (given && (context < 0 || context > mega::kMaxContext))
      return usage("--context has value {0}, expected 0 to {1}", context,
                   mega::kMaxContext);
    if (!given && options.state.seed)
      context = 0;
  }
  return Error::success();
}

/// Options of one target are no options of another.
static Error checkTarget(const Flags &flags) {
  using Target = Options::Target;
  if (flags.timedSteps.getNumOccurrences() && flags.target != Target::Cuda)
    return usage("--time measures a device, expected --target=cuda");
  if (flags.common.device.getNumOccurrences() && flags.target != Target::Cuda)
    return usage("--device chooses a GPU, expected --target=cuda");
  if (flags.target == Target::Sim)
    return Error::success();
  for (const cl::Option *option : std::initializer_list<const cl::Option *>{
           &flags.simSeed, &flags.simPolicy, &flags.simSms, &flags.simRaces})
    if (option->getNumOccurrences())
      return usage("--{0} is the simulator's, expected --target=sim",
                   option->ArgStr);
  return Error::success();
}

/// The simulator's choices.
static Error placeSim(const Flags &flags, SimChoices &sim) {
  std::vector<std::string> policies;
  for (const auto &[name, policy] : megalith::simPolicies())
    policies.push_back(name);
  if (!is_contained(policies, flags.simPolicy.getValue()))
    return usage("--sim-policy has value '{0}', expected one of {1}",
                 flags.simPolicy, join(policies, ", "));
  if (flags.simSms.getNumOccurrences() && flags.simSms < 1)
    return usage("--sim-sms has value {0}, expected 1 or more", flags.simSms);
  sim = {flags.simSeed, flags.simPolicy, flags.simSms, flags.simRaces};
  return Error::success();
}

/// Bounds of plain numbers and words.
static Error checkValues(const Flags &flags) {
  if (flags.check != "" && flags.check != "reference")
    return usage("--check has value '{0}', expected 'reference'", flags.check);
  if (flags.feed != "fresh" && flags.feed != "output")
    return usage("--feed has value '{0}', expected 'fresh' or 'output'",
                 flags.feed);
  if (flags.steps < 1)
    return usage("--steps has value {0}, expected 1 or more", flags.steps);
  if (flags.timedSteps < 0)
    return usage("--time has value {0}, expected 0 or more", flags.timedSteps);
  for (const auto *option : {&flags.minCosine, &flags.maxError, &flags.tieGap})
    if (!std::isfinite(*option) || *option < 0)
      return usage("--{0} has value {1}, expected a finite number, 0 or more",
                   option->ArgStr, option->getValue());
  if (flags.check != "" && flags.target == Options::Target::Reference)
    return usage("--check=reference compares the reference with itself, "
                 "expected --target=cuda or --target=sim");
  return Error::success();
}

Expected<Options> mega::run::parseOptions(int argc, char **argv) {
  Flags flags;
  cl::HideUnrelatedOptions(category);
  cl::ParseCommandLineOptions(argc, argv,
                              "Runs a decode block and checks its results\n");
  Options options;
  options.target = flags.target;
  options.check = flags.check == "reference";
  options.feedOutput = flags.feed == "output";
  options.noise = flags.noise;
  options.statePrefix = flags.statePrefix;
  options.steps = flags.steps;
  options.timedSteps = flags.timedSteps;
  options.relaxed = flags.relaxed;
  options.output = flags.output;
  options.minCosine = flags.minCosine;
  options.maxError = flags.maxError;
  options.tieGap = flags.tieGap;
  if (Error error = checkValues(flags))
    return error;
  if (Error error = flags.common.place(options))
    return error;
  if (Error error = checkTarget(flags))
    return error;
  if (Error error = placeSim(flags, options.sim))
    return error;
  for (auto [flag, text, place] :
       {std::tuple("state", &flags.state, &options.state),
        std::tuple("input", &flags.input, &options.input)}) {
    Expected<Source> source = parseSource(flag, *text);
    if (!source)
      return source.takeError();
    *place = *source;
  }
  if (Error error = checkOutput(flags.output))
    return error;
  if (Error error = placeSubject(flags, options))
    return error;
  if (Error error = placeCases(flags, options))
    return error;
  return options;
}
