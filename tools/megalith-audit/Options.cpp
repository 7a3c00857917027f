// SPDX-License-Identifier: Apache-2.0
/// \file
/// The command line of megalith-audit.

#include "Options.h"

#include "../megalith-run/Flags.h"

#include "llvm/Support/FileSystem.h"

#include <cmath>

using namespace llvm;
using namespace mega::audit;
namespace run = mega::run;
using run::usage;

static cl::OptionCategory category("megalith-audit options");

namespace {
enum class Target { Cuda, Sim };

/// The flags as they are typed.
struct Flags {
  cl::opt<std::string> bundle{cl::Positional, cl::Required,
                              cl::desc("<bundle directory>"),
                              cl::cat(category)};
  mega::ChoiceFlag<Target> target{
      "target", cl::desc("What executes the bundle"),
      cl::values(
          clEnumValN(Target::Cuda, "cuda", "its kernel on a GPU (default)"),
          clEnumValN(Target::Sim, "sim",
                     "its kernel.cu on the simulator, on this host; "
                     "fewer checks, and the report says which")),
      cl::init(Target::Cuda), cl::cat(category)};
  cl::opt<std::string> block{
      "block",
      cl::desc("Description of the bundle's block: outputs are compared with "
               "the reference interpreter's"),
      cl::value_desc("file"), cl::cat(category)};
  run::CommonFlags common{category, "balanced:1234"};
  cl::opt<uint64_t> seed{"seed",
                         cl::desc("Seed of states and tokens (default 0)"),
                         cl::value_desc("n"), cl::init(0), cl::cat(category)};
  cl::opt<int64_t> context{
      "context", cl::desc("Tokens before the first step (default 16; sim 4)"),
      cl::value_desc("n"), cl::init(-1), cl::cat(category)};
  cl::opt<int64_t> steps{
      "steps", cl::desc("Steps of the long run (default 1000; sim 4)"),
      cl::value_desc("n"), cl::init(-1), cl::cat(category)};
  cl::opt<int64_t> maxInputs{
      "max-inputs",
      cl::desc("Tokens to try until one reads a weight (default 256; sim 16)"),
      cl::value_desc("n"), cl::init(-1), cl::cat(category)};
  cl::opt<double> maxError{
      "max-error",
      cl::desc("Largest relative L2 error from the reference (default 0.01)"),
      cl::init(1e-2), cl::cat(category)};
  cl::opt<double> tieGap{
      "tie-gap",
      cl::desc("Largest logit gap at which another choice of experts counts "
               "as a tie (default 0.05)"),
      cl::init(0.05), cl::cat(category)};
  cl::opt<std::string> cupti{
      "cupti",
      cl::desc("libcupti.so that counts calls of the driver (default: "
               "$MEGALITH_CUPTI, the loader's, or a toolkit's)"),
      cl::value_desc("file"), cl::cat(category)};
  cl::opt<int> simSms{"sim-sms",
                      cl::desc("SMs of the simulator, a CTA each (default 4)"),
                      cl::value_desc("n"), cl::init(4), cl::cat(category)};
  cl::opt<bool> simRaces{"sim-races",
                         cl::desc("Check every access for races (default "
                                  "off: two to four times as fast)"),
                         cl::init(false), cl::cat(category)};
  cl::opt<std::string> json{
      "json",
      cl::desc("Write the report as JSON; - for standard output, in "
               "place of the table"),
      cl::value_desc("file"), cl::cat(category)};
};
} // namespace

/// Options of one target are no options of another; numbers have bounds.
static Error checkFlags(const Flags &flags) {
  bool sim = flags.target == Target::Sim;
  for (const cl::Option *option : std::initializer_list<const cl::Option *>{
           &flags.simSms, &flags.simRaces})
    if (!sim && option->getNumOccurrences())
      return usage("--{0} is the simulator's, expected --target=sim",
                   option->ArgStr);
  for (const cl::Option *option : std::initializer_list<const cl::Option *>{
           &flags.common.device, &flags.cupti})
    if (sim && option->getNumOccurrences())
      return usage("--{0} is a GPU's, expected --target=cuda", option->ArgStr);
  for (const auto *option : {&flags.context, &flags.steps, &flags.maxInputs})
    if (option->getNumOccurrences() && *option < 1)
      return usage("--{0} has value {1}, expected 1 or more", option->ArgStr,
                   option->getValue());
  if (flags.context > mega::kMaxContext)
    return usage("--context has value {0}, expected 1 to {1}",
                 flags.context.getValue(), mega::kMaxContext);
  if (flags.simSms < 1)
    return usage("--sim-sms has value {0}, expected 1 or more", flags.simSms);
  for (const auto *option : {&flags.maxError, &flags.tieGap})
    if (!(*option >= 0 && std::isfinite(*option)))
      return usage("--{0} has value {1}, expected a finite number, 0 or more",
                   option->ArgStr, option->getValue());
  for (const auto *option : {&flags.block, &flags.cupti, &flags.json})
    if (option->getNumOccurrences() && option->empty())
      return usage("--{0} is empty, expected a file", option->ArgStr);
  if (!sys::fs::is_directory(flags.bundle))
    return usage("'{0}' is not a folder, expected a bundle",
                 flags.bundle.getValue());
  return Error::success();
}

Expected<AuditOptions> mega::audit::parseOptions(int argc, char **argv) {
  Flags flags;
  cl::HideUnrelatedOptions(category);
  cl::ParseCommandLineOptions(
      argc, argv, "Checks that a bundle's kernel does what it says\n");
  if (Error error = checkFlags(flags))
    return error;
  AuditOptions options;
  options.source.bundle = flags.bundle;
  options.source.block = flags.block;
  if (Error error = flags.common.place(options.source))
    return error;

  options.sim = flags.target == Target::Sim;
  options.simChoices = {flags.simSms, flags.simRaces};
  options.json = flags.json;
  Plan &plan = options.plan;
  // A step takes the simulator a second rather than a millisecond.
  if (options.sim) {
    plan.context = 4;
    plan.steps = 4;
    plan.reruns = 2;
    plan.maxInputs = 16;
  }
  plan.seed = flags.seed;
  if (flags.context.getNumOccurrences())
    plan.context = flags.context;
  if (flags.steps.getNumOccurrences())
    plan.steps = flags.steps;
  if (flags.maxInputs.getNumOccurrences())
    plan.maxInputs = flags.maxInputs;
  plan.maxError = flags.maxError;
  plan.tieGap = flags.tieGap;
  plan.cupti = flags.cupti;
  return options;
}
