// SPDX-License-Identifier: Apache-2.0
/// \file
/// Shared flags and main().

#include "Tool.h"

#include "JsonFile.h"

#include "mega/IR/Mega.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/Diagnostics.h"
#include "llvm/Support/SourceMgr.h"
#include "llvm/Support/WithColor.h"

using namespace mlir;
using namespace mega;
namespace cl = llvm::cl;

MachineFlag::MachineFlag(cl::OptionCategory &category)
    : opt("machine",
          cl::desc("machine file (JSON) instead of the shipped one for --arch"),
          cl::cat(category)) {}

ArchFlag::ArchFlag(cl::OptionCategory &category)
    : opt("arch", cl::init("sm_90a"), cl::desc("architecture (default sm_90a)"),
          cl::cat(category)) {}

OptionsFlag::OptionsFlag(cl::OptionCategory &category)
    : opt("options",
          cl::desc("options file, as megalith-explore writes it; other flags "
                   "come on top"),
          cl::cat(category)) {}

llvm::Expected<CompileOptions> OptionsFlag::read() const {
  if (empty())
    return CompileOptions();
  return readOptionsFile(*this);
}

ScheduleFlags::ScheduleFlags(cl::OptionCategory &category)
    : sync("sync", cl::desc("what may order two stages"),
           cl::init(Synchronization::Barriers),
           cl::values(clEnumValN(Synchronization::Barriers, "barriers",
                                 "grid barriers (default)"),
                      clEnumValN(Synchronization::Counters, "counters",
                                 "grid barriers and counters")),
           cl::cat(category)),
      waitLimit("wait-limit", cl::init(64),
                cl::desc("tiles that one counter may stand for, 1 or more, "
                         "with --sync=counters (default 64)"),
                cl::cat(category)),
      schedule(
          "schedule",
          cl::desc("follow a schedule file (JSON) instead of choosing one"),
          cl::cat(category)) {}

llvm::Error ScheduleFlags::apply(CompileOptions &options) const {
  bool syncGiven = sync.getNumOccurrences() != 0;
  bool limitGiven = waitLimit.getNumOccurrences() != 0;
  if (schedule.getNumOccurrences() != 0) {
    if (syncGiven || limitGiven)
      return llvm::createStringError(
          "--schedule says what orders two stages, expected no --sync and no "
          "--wait-limit beside it");
    // Better known before the block is compiled.
    if (auto text = readText(schedule, "schedule file "); !text)
      return text.takeError();
    options.schedule.file = schedule;
  }
  if (syncGiven)
    options.schedule.sync = sync;
  if (!limitGiven)
    return llvm::Error::success();
  if (waitLimit == 0)
    return llvm::createStringError("--wait-limit is 0, expected 1 or more");
  if (options.schedule.sync != Synchronization::Counters)
    return llvm::createStringError(
        "--wait-limit is " + std::to_string(waitLimit) +
        " and stages are ordered by barriers only, expected --sync=counters "
        "beside it");
  options.schedule.waitLimit = waitLimit;
  return llvm::Error::success();
}

llvm::Error mega::checkContext(int64_t context) {
  if (context >= 0 && context <= kMaxContext)
    return llvm::Error::success();
  return llvm::createStringError("--context is " + std::to_string(context) +
                                 ", expected 0 to " +
                                 std::to_string(kMaxContext));
}

int mega::reportError(StringRef tool, llvm::Error error) {
  llvm::WithColor::error(llvm::errs(), tool)
      << llvm::toString(std::move(error)) << "\n";
  return 1;
}

int mega::runTool(StringRef tool,
                  llvm::function_ref<llvm::Error(MLIRContext &)> body) {
  DialectRegistry registry;
  registry.insert<MegaDialect, arith::ArithDialect, math::MathDialect>();
  MLIRContext context(registry);
  llvm::SourceMgr sources;
  SourceMgrDiagnosticHandler handler(sources, &context);
  // A message that names the thing needs no dump of the op after it.
  context.printOpOnDiagnostic(false);
  if (llvm::Error error = body(context))
    return reportError(tool, std::move(error));
  return 0;
}
