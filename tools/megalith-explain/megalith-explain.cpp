// SPDX-License-Identifier: Apache-2.0
/// \file
/// Explains a block's schedule: what runs when, how long it should take, what
/// every synchronisation is for.

#include "Formats.h"

#include "Compile.h"
#include "JsonFile.h"
#include "MachineChoice.h"
#include "Tool.h"

#include "llvm/Support/CommandLine.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/InitLLVM.h"

using namespace mlir;
using namespace mega;
namespace cl = llvm::cl;

namespace {
enum class Format { Text, Json, Html, Trace };

cl::OptionCategory category("megalith-explain options");
cl::opt<std::string> input(cl::Positional, cl::Required,
                           cl::desc("<block.mlir>"), cl::cat(category));
ArchFlag arch(category);
MachineFlag machine(category);
ChoiceFlag<Format> outputFormat(
    "format", cl::desc("what to write"), cl::init(Format::Text),
    cl::values(clEnumValN(Format::Text, "text", "tables (default)"),
               clEnumValN(Format::Json, "json", "all of it, for programs"),
               clEnumValN(Format::Html, "html", "one self-contained page"),
               clEnumValN(Format::Trace, "trace",
                          "trace events, for Perfetto")),
    cl::cat(category));
cl::opt<std::string> output("o", cl::init("-"),
                            cl::desc("output path (default: standard output)"),
                            cl::cat(category));
OptionsFlag optionsFlag(category);
ScheduleFlags scheduleFlags(category);
cl::opt<int64_t> context("context", cl::init(2048),
                         cl::desc("rows in each cache (default 2048, or as "
                                  "measured)"),
                         cl::cat(category));
cl::opt<std::string> measured("measured",
                              cl::desc("what megalith-bench --json wrote for "
                                       "this block"),
                              cl::cat(category));
cl::opt<std::string> fit("fit",
                         cl::desc("write the machine file again, its "
                                  "coefficients fitted to --measured"),
                         cl::cat(category));
} // namespace

/// The machine file with other coefficients; all else stays byte for byte.
static llvm::Error writeFit(StringRef text, const llvm::StringMap<double> &fit,
                            StringRef path) {
  // The text was parsed before: the object is there, and holds numbers only.
  size_t begin = text.find('{', text.find("\"phase\"", text.find("\"costs\"")));
  size_t end = text.find('}', begin);
  std::string coefficients;
  llvm::raw_string_ostream os(coefficients);
  auto add = [&](StringRef key) {
    os << (coefficients.empty() ? "" : ", ") << '"' << key
       << "\": " << llvm::format("%.5g", fit.lookup(key));
  };
  for (const CostTerm &term : costTerms())
    add(term.key);
  add(kSkewKey);
  add(kCounterSkewKey);
  return writeFile(
      path,
      (text.take_front(begin + 1) + coefficients + text.drop_front(end)).str());
}

static std::string render(const explain::Explanation &explanation) {
  std::string text;
  llvm::raw_string_ostream os(text);
  switch (outputFormat) {
  case Format::Text:
    explain::printText(explanation, os);
    break;
  case Format::Json:
    os << llvm::formatv("{0:2}\n",
                        llvm::json::Value(explain::jsonOf(explanation)));
    break;
  case Format::Html:
    explain::printHtml(explanation, os);
    break;
  case Format::Trace:
    os << llvm::formatv("{0}\n",
                        llvm::json::Value(explain::traceOf(explanation)));
    break;
  }
  return text;
}

static llvm::Error run(MLIRContext &mlirContext) {
  if (llvm::Error error = checkContext(context))
    return error;
  if (!fit.empty() && measured.empty())
    return llvm::createStringError("--fit is given without --measured");
  auto choice = chooseMachine(mlirContext, arch, machine);
  if (!choice)
    return choice.takeError();
  OwningOpRef<ModuleOp> block = parseBlock(input, mlirContext);
  if (!block)
    return llvm::createStringError("cannot read " + input);
  auto options = optionsFlag.read();
  if (!options)
    return options.takeError();
  if (llvm::Error error = scheduleFlags.apply(*options))
    return error;
  FailureOr<CompiledKernel> kernel =
      compileBlock(*block, choice->target, options->emitter, options->schedule,
                   options->stages);
  if (failed(kernel))
    return llvm::createStringError("cannot compile " + input);

  WorkSetting setting{choice->target.getCtas(), context};
  std::optional<explain::Measurement> measurement;
  if (!measured.empty()) {
    std::vector<std::vector<std::string>> stages;
    for (PhaseOp phase : kernel->kernel.getBody().getOps<PhaseOp>()) {
      auto &names = stages.emplace_back();
      for (StageOp stage : phase.getBody().getOps<StageOp>())
        names.push_back(stage.getName().str());
    }
    auto read =
        explain::readMeasurement(measured, kernel->kernel.getSymName(), stages);
    if (!read)
      return read.takeError();
    measurement = std::move(*read);
    if (context.getNumOccurrences() != 0 && context != measurement->context)
      return llvm::createStringError(
          "--context is " + std::to_string(context) + ", expected " +
          std::to_string(measurement->context) + ", at which " + measured +
          " was measured");
    setting.context = measurement->context;
  }
  if (!fit.empty()) {
    std::vector<double> work;
    double stamped = 0;
    for (const explain::MeasuredPhase &phase : measurement->phases) {
      work.push_back(phase.workUs);
      stamped += phase.workUs + phase.waitUs;
    }
    TokenCost cost = predict(kernel->kernel, choice->costs, setting);
    auto fitted = fitPhaseCosts(cost, work, choice->costs);
    // What the step takes and neither its phases nor idle barriers explain.
    if (cost.barriers > 0) {
      MachineCosts idle = choice->costs;
      idle.phase = fitted;
      idle.phase[kSkewKey] = 0;
      double rest = measurement->tokenUs.value_or(stamped) -
                    predict(kernel->kernel, idle, setting).totalUs;
      fitted[kSkewKey] =
          std::max(0.0, std::round(100 * rest / double(cost.barriers)) / 100);
    }
    choice->costs.phase = fitted;
    if (llvm::Error error = writeFit(choice->text, fitted, fit))
      return error;
  }
  explain::Explanation explanation = explain::explain(
      kernel->kernel, choice->costs, setting, std::move(measurement));
  explanation.machine = machine.empty() ? arch.getValue() : machine.getValue();
  return writeFile(output, render(explanation));
}

int main(int argc, char **argv) {
  llvm::InitLLVM init(argc, argv);
  checkStandardOutput("megalith-explain");
  cl::HideUnrelatedOptions(category);
  cl::ParseCommandLineOptions(argc, argv,
                              "Megalith: explains a block's schedule\n");
  return runTool("megalith-explain", run);
}
