// SPDX-License-Identifier: Apache-2.0
/// \file
/// Tries the compiler's choices on a block: how many barriers each takes, how
/// long it should take, how long it does.

#include "Exploration.h"
#include "JsonFile.h"
#include "Measuring.h"
#include "Report.h"
#include "Tool.h"

#include "mlir/IR/MLIRContext.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/InitLLVM.h"
#include "llvm/Support/xxhash.h"

#include <thread>

using namespace mega;
using namespace mega::explore;
namespace cl = llvm::cl;

namespace {
cl::OptionCategory category("megalith-explore options");
cl::opt<std::string> input(cl::Positional, cl::desc("<block.mlir>"),
                           cl::cat(category));
ArchFlag arch(category);
MachineFlag machine(category);
cl::opt<std::string> folder("o",
                            cl::desc("folder for the state, options files and "
                                     "bundles (default <block>.explore)"),
                            cl::cat(category));
cl::opt<int64_t> context("context", cl::init(2048),
                         cl::desc("rows in each cache (default 2048)"),
                         cl::cat(category));
cl::opt<int64_t> jobs("jobs", cl::init(0),
                      cl::desc("compilations at a time (default: all cores)"),
                      cl::cat(category));
cl::opt<bool> nvrtc("nvrtc",
                    cl::desc("assemble the Pareto set: registers and spills"),
                    cl::cat(category));
cl::opt<bool> bundles("bundles",
                      cl::desc("write a bundle of each candidate that is "
                               "worth measuring, and candidates.json"),
                      cl::cat(category));
cl::opt<int64_t> top("top", cl::init(12),
                     cl::desc("how many candidates are worth measuring: the "
                              "default, the Pareto set, then the fastest "
                              "predicted (default 12)"),
                     cl::cat(category));
cl::opt<bool> measure("measure",
                      cl::desc("write bundles and time them here, with "
                               "megalith-bench, interleaved"),
                      cl::cat(category));
cl::opt<std::string> measured("measured",
                              cl::desc("what megalith-bench --candidates "
                                       "wrote on another machine"),
                              cl::cat(category));
cl::opt<bool> showAll("all", cl::desc("print every kernel, not the Pareto set"),
                      cl::cat(category));
cl::opt<bool> listKnobs("list", cl::desc("print what there is to choose"),
                        cl::cat(category));
} // namespace

static llvm::Expected<std::string> hashOf(llvm::StringRef path) {
  auto text = readText(path);
  if (!text)
    return text.takeError();
  return llvm::utohexstr(llvm::xxh3_64bits(*text), true, 16);
}

static llvm::Expected<Setting> makeSetting() {
  Setting setting;
  setting.blockPath = input;
  setting.arch = arch;
  setting.machinePath = machine;
  setting.jobs =
      jobs > 0 ? int64_t(jobs)
               : std::max<int64_t>(std::thread::hardware_concurrency(), 1);
  llvm::StringRef stem = llvm::StringRef(input);
  stem.consume_back(".mlir");
  setting.folder = folder.empty() ? (stem + ".explore").str() : folder;
  auto hash = hashOf(input);
  if (!hash)
    return hash.takeError();
  mlir::MLIRContext mlirContext;
  auto choice = chooseMachine(mlirContext, arch, machine);
  if (!choice)
    return choice.takeError();
  setting.subject = {input, *hash, choice->target.getArch().str(),
                     llvm::utohexstr(llvm::xxh3_64bits(choice->text), true, 16),
                     context};
  return setting;
}

static llvm::Error checkOptions() {
  if (input.empty())
    return llvm::createStringError("no block is given, expected <block.mlir>");
  if (llvm::Error error = checkContext(context))
    return error;
  if (jobs < 0 || top < 1)
    return llvm::createStringError("--jobs is " + std::to_string(jobs) +
                                   " and --top is " + std::to_string(top) +
                                   ", expected 0 or more and 1 or more");
  if (measure && !measured.empty())
    return llvm::createStringError(
        "--measure and --measured are both given, expected one");
  return llvm::Error::success();
}

/// The default, the Pareto set, then the fastest by prediction; `top` of them.
static std::vector<size_t> worthMeasuring(llvm::ArrayRef<Candidate> candidates,
                                          llvm::ArrayRef<size_t> different,
                                          llvm::ArrayRef<size_t> front) {
  std::vector<size_t> chosen;
  auto add = [&](size_t index) {
    if (int64_t(chosen.size()) < top && !llvm::is_contained(chosen, index))
      chosen.push_back(index);
  };
  if (candidates.front().compiled)
    add(0);
  for (size_t index : front)
    add(index);
  std::vector<size_t> byTime(different.begin(), different.end());
  llvm::stable_sort(byTime, [&](size_t a, size_t b) {
    return candidates[a].compiled->predictedUs <
           candidates[b].compiled->predictedUs;
  });
  for (size_t index : byTime)
    add(index);
  return chosen;
}

/// options/NNN.json for each of `shown`, and best.json.
static llvm::Error writeOptions(const Setting &setting,
                                llvm::ArrayRef<Candidate> candidates,
                                llvm::ArrayRef<size_t> shown, size_t best) {
  std::string sub = setting.folder + "/options";
  if (std::error_code error = llvm::sys::fs::create_directories(sub))
    return fileError(error, "cannot create " + sub);
  for (size_t index : shown)
    if (llvm::Error error = writeJson(
            llvm::formatv("{0}/{1,0+3}.json", sub, candidates[index].id).str(),
            optionsFile(candidates[index].options)))
      return error;
  return writeJson(setting.folder + "/best.json",
                   optionsFile(candidates[best].options));
}

/// Ends an exploration that the user stopped; the exit code of SIGINT.
static int reportInterrupt(llvm::ArrayRef<Candidate> candidates,
                           const Setting &setting) {
  size_t visited = llvm::count_if(
      candidates, [](const Candidate &c) { return c.visited(); });
  llvm::errs() << "megalith-explore: stopped after " << visited << " of "
               << candidates.size() << "; the same command goes on from "
               << statePath(setting) << "\n";
  return 130;
}

static llvm::Expected<int> run(llvm::StringRef program) {
  if (llvm::Error error = checkOptions())
    return error;
  auto setting = makeSetting();
  if (!setting)
    return setting.takeError();
  if (std::error_code error =
          llvm::sys::fs::create_directories(setting->folder))
    return fileError(error, "cannot create " + setting->folder);
  std::vector<Candidate> candidates = enumerate();
  std::string path = statePath(*setting);
  if (llvm::Error error = loadState(path, setting->subject, candidates))
    return error;
  catchInterrupts();
  if (llvm::Error error = compileAll(*setting, candidates))
    return error;
  if (interrupted())
    return reportInterrupt(candidates, *setting);

  std::vector<size_t> different = distinct(candidates);
  if (different.empty())
    return llvm::createStringError("nothing can be compiled: " +
                                   candidates.front().error);
  std::vector<size_t> front = paretoFront(candidates, different);
  std::vector<size_t> worth = worthMeasuring(candidates, different, front);
  if (bundles || measure)
    if (llvm::Error error = writeBundles(*setting, candidates, worth))
      return error;
  // What has a bundle is assembled already.
  if (nvrtc)
    if (llvm::Error error = assemble(*setting, candidates, front))
      return error;
  if (interrupted())
    return reportInterrupt(candidates, *setting);
  std::string times = measured;
  if (measure) {
    times = setting->folder + "/measured.json";
    if (llvm::Error error = runBench(program, setting->folder, context, times))
      return error;
  }
  if (!times.empty()) {
    if (llvm::Error error = readTimes(times, context, candidates))
      return error;
    if (llvm::Error error = saveState(path, setting->subject, candidates))
      return error;
  }

  size_t best = *fastest(candidates, different);
  std::vector<size_t> shown = front;
  for (size_t index : showAll ? different : worth)
    if (!llvm::is_contained(shown, index) &&
        (showAll || index == 0 || candidates[index].measuredUs))
      shown.push_back(index);
  if (!llvm::is_contained(shown, best))
    shown.push_back(best);
  if (llvm::Error error = writeOptions(*setting, candidates, shown, best))
    return error;
  printTable(candidates, shown, front, best, llvm::outs());
  llvm::outs() << "+ Pareto set of barriers and predicted time; * fastest, in "
               << setting->folder << "/best.json\n";
  printSummary(candidates, different.size(), llvm::outs());
  return 0;
}

int main(int argc, char **argv) {
  llvm::InitLLVM init(argc, argv);
  checkStandardOutput("megalith-explore");
  cl::HideUnrelatedOptions(category);
  cl::ParseCommandLineOptions(
      argc, argv, "Megalith: tries the compiler's choices on a block\n");
  if (listKnobs) {
    printKnobs(llvm::outs());
    return 0;
  }
  llvm::Expected<int> code =
      run(llvm::sys::fs::getMainExecutable(argv[0], (void *)&main));
  return code ? *code : reportError("megalith-explore", code.takeError());
}
