// SPDX-License-Identifier: Apache-2.0
/// \file
/// The user's driver: a block description in, CUDA text, PTX, cubin, a bundle,
/// a torch module or the lowered IR out.

#include "Compile.h"
#include "JsonFile.h"
#include "Output.h"
#include "Tool.h"
#include "TorchFolder.h"

#include "mega/Target/Machine.h"
#include "mega/Transforms/ScheduleFile.h"

#include "llvm/Support/CommandLine.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/InitLLVM.h"
#include "llvm/Support/Path.h"

using namespace mlir;
using namespace mega;
namespace cl = llvm::cl;

namespace {
enum class Emit { Mlir, Schedule, Cuda, Ptx, Cubin, Bundle, Torch };

cl::OptionCategory category("megalithc options");
cl::opt<std::string> input(cl::Positional, cl::Required,
                           cl::desc("<block.mlir>"), cl::cat(category));
cl::list<std::string> archs("arch", cl::CommaSeparated,
                            cl::desc("architectures, such as sm_90a,sm_100a "
                                     "(default sm_90a, or the machine "
                                     "file's)"),
                            cl::cat(category));
cl::list<std::string> ptxArchs(
    "ptx", cl::CommaSeparated,
    cl::desc("also put PTX into the bundle, such as compute_80, for devices "
             "that none of --arch fits"),
    cl::cat(category));
MachineFlag machine(category);
ChoiceFlag<Emit>
    emit("emit", cl::desc("what to write"), cl::init(Emit::Bundle),
         cl::values(clEnumValN(Emit::Mlir, "mlir", "level-3 IR"),
                    clEnumValN(Emit::Schedule, "schedule",
                               "schedule file for --schedule"),
                    clEnumValN(Emit::Cuda, "cuda", "CUDA C++"),
                    clEnumValN(Emit::Ptx, "ptx", "PTX text"),
                    clEnumValN(Emit::Cubin, "cubin", "GPU image"),
                    clEnumValN(Emit::Bundle, "bundle",
                               "directory for the runtime "
                               "(default)"),
                    clEnumValN(Emit::Torch, "torch",
                               "Python package: a torch.nn.Module, "
                               "its bundle and the runtime")),
         cl::cat(category));
cl::opt<std::string> output("o", cl::desc("output path; - for standard output"),
                            cl::cat(category));
OptionsFlag optionsFlag(category);
cl::opt<bool> printPhases("print-phases", cl::desc("print the phase table"),
                          cl::cat(category));
ScheduleFlags scheduleFlags(category);
cl::opt<bool> prefetch("prefetch", cl::init(true),
                       cl::desc("load small weights and recurrent state "
                                "before waiting at a barrier (default on)"),
                       cl::cat(category));
cl::opt<std::string>
    ring("ring",
         cl::desc("copies in flight a warp x weight units in a copy, as in 4x2 "
                  "(default: what shared memory has room for)"),
         cl::value_desc("SLOTSxUNITS"), cl::cat(category));
cl::opt<bool> instrument("instrument",
                         cl::desc("stamp the SM clock at each phase's start "
                                  "and end, in the probe megalith.stamps"),
                         cl::cat(category));
cl::opt<std::string> runtimeLibrary(
    "runtime-library",
    cl::desc("libmegalith.so that --emit=torch puts into the folder (default: "
             "the one that was built or installed with this program)"),
    cl::cat(category));
} // namespace

/// --emit=torch.
static llvm::Error writeTorch(ModuleOp block, CompiledKernel &kernel,
                              const char *argv0) {
  if (output == "-")
    return llvm::createStringError("a torch module cannot go to standard "
                                   "output, expected -o DIRECTORY");
  auto library = findRuntimeLibrary(runtimeLibrary, argv0);
  if (!library)
    return library.takeError();
  return writeTorchFolder(
      output, block, llvm::sys::path::filename(input), kernel,
      llvm::SmallVector<std::string>(archs.begin(), archs.end()),
      llvm::SmallVector<std::string>(ptxArchs.begin(), ptxArchs.end()),
      *library);
}

/// The options file's choices under those of the command line.
static llvm::Expected<CompileOptions> chooseOptions() {
  auto read = optionsFlag.read();
  if (!read)
    return read.takeError();
  CompileOptions options = std::move(*read);
  if (llvm::Error error = scheduleFlags.apply(options))
    return error;
  if (prefetch.getNumOccurrences() != 0)
    options.emitter.prefetchWeights = prefetch;
  if (!ring.empty()) {
    options.emitter.ring = parseRingShape(ring);
    if (!options.emitter.ring)
      return llvm::createStringError("--ring is '" + ring +
                                     "', expected SLOTSxUNITS, each 1 to 4");
  }
  options.emitter.instrument = instrument;
  return options;
}

/// One target that all of `--arch` can run: the largest grid, the smallest
/// shared memory.
static llvm::Expected<TargetAttr> chooseTarget(MLIRContext &context) {
  if (!machine.empty()) {
    auto text = readText(machine, "machine file ");
    if (!text)
      return text.takeError();
    auto target = parseMachine(&context, *text, machine);
    if (target && archs.empty())
      archs.push_back(target->getArch().str());
    return target;
  }
  if (archs.empty())
    archs.push_back("sm_90a");
  for (auto [index, arch] : llvm::enumerate(archs))
    if (llvm::is_contained(llvm::ArrayRef(&archs[0], index), arch))
      return llvm::createStringError("--arch names " + arch +
                                     " twice, expected each once");
  TargetAttr merged;
  for (const std::string &arch : archs) {
    auto target = builtinMachine(&context, arch);
    if (!target)
      return target.takeError();
    if (!merged) {
      merged = *target;
      continue;
    }
    if (merged.getThreads() != target->getThreads())
      return llvm::createStringError(
          "arch " + arch + " has " + std::to_string(target->getThreads()) +
          " threads a CTA, expected " + std::to_string(merged.getThreads()) +
          " like the others in one bundle");
    merged = TargetAttr::get(
        &context, merged.getArch(),
        std::max(merged.getCtas(), target->getCtas()), merged.getThreads(),
        std::min(merged.getSharedBytes(), target->getSharedBytes()));
  }
  return merged;
}

/// --ptx names virtual architectures, each once, and goes into a bundle.
static llvm::Error checkPtxArchs() {
  if (!ptxArchs.empty() && emit != Emit::Bundle && emit != Emit::Torch)
    return llvm::createStringError(
        "--ptx is for a bundle, expected --emit=bundle or --emit=torch");
  for (auto [index, arch] : llvm::enumerate(ptxArchs)) {
    llvm::StringRef digits = arch;
    bool known = digits.consume_front("compute_");
    digits.consume_back("a");
    unsigned capability;
    if (!known || digits.getAsInteger(10, capability) || capability < 80)
      return llvm::createStringError("--ptx names '" + arch +
                                     "', expected one like compute_80, not "
                                     "below that");
    if (llvm::is_contained(llvm::ArrayRef(&ptxArchs[0], index), arch))
      return llvm::createStringError("--ptx names " + arch +
                                     " twice, expected each once");
  }
  return llvm::Error::success();
}

static llvm::Error writeOutput(ModuleOp block, CompiledKernel &kernel,
                               const char *argv0) {
  bool single = emit == Emit::Ptx || emit == Emit::Cubin;
  if (single && archs.size() != 1)
    return llvm::createStringError(
        "--arch names " + std::to_string(archs.size()) +
        " architectures, expected 1 for this --emit");
  if (output.empty())
    return printPhases ? llvm::Error::success()
                       : llvm::createStringError("no output, expected -o PATH");
  if (emit == Emit::Torch)
    return writeTorch(block, kernel, argv0);
  if (emit == Emit::Bundle) {
    if (output == "-")
      return llvm::createStringError(
          "a bundle cannot go to standard output, expected -o DIRECTORY");
    return writeBundle(
        output, kernel,
        llvm::SmallVector<std::string>(archs.begin(), archs.end()),
        llvm::SmallVector<std::string>(ptxArchs.begin(), ptxArchs.end()));
  }
  if (emit == Emit::Mlir) {
    std::string text;
    llvm::raw_string_ostream os(text);
    kernel.module->print(os);
    return writeFile(output, text + "\n");
  }
  if (emit == Emit::Schedule)
    return writeFile(
        output,
        llvm::formatv("{0:2}\n", toJson(extractSchedule(kernel.kernel))).str());
  if (emit == Emit::Cuda)
    return writeFile(output, kernel.emitted.source);
  auto program = compileImage(kernel, archs.front(),
                              emit == Emit::Ptx ? megalith::NvrtcImage::Ptx
                                                : megalith::NvrtcImage::Cubin);
  if (!program)
    return program.takeError();
  return writeFile(output, program->image);
}

static llvm::Error run(MLIRContext &context, const char *argv0) {
  if (llvm::Error error = checkPtxArchs())
    return error;
  if (!runtimeLibrary.empty() && emit != Emit::Torch)
    return llvm::createStringError(
        "--runtime-library is for --emit=torch only");
  auto target = chooseTarget(context);
  if (!target)
    return target.takeError();
  auto options = chooseOptions();
  if (!options)
    return options.takeError();
  OwningOpRef<ModuleOp> block = parseBlock(input, context);
  // Diagnostics have said what is wrong.
  if (!block)
    return llvm::createStringError("cannot read " + input);
  FailureOr<CompiledKernel> kernel = compileBlock(
      *block, *target, options->emitter, options->schedule, options->stages);
  if (failed(kernel))
    return llvm::createStringError("cannot compile " + input);
  if (printPhases)
    printPhaseTable(kernel->kernel, kernel->facts(),
                    output == "-" ? llvm::errs() : llvm::outs());
  return writeOutput(*block, *kernel, argv0);
}

int main(int argc, char **argv) {
  llvm::InitLLVM init(argc, argv);
  checkStandardOutput("megalithc");
  cl::HideUnrelatedOptions(category);
  cl::ParseCommandLineOptions(argc, argv,
                              "Megalith: a decode block to one CUDA kernel\n");
  return runTool("megalithc",
                 [&](MLIRContext &context) { return run(context, argv[0]); });
}
