// SPDX-License-Identifier: Apache-2.0
/// \file
/// Workers, each with a context of its own.

#include "Exploration.h"

#include "JsonFile.h"

#include "Progress.h"

#include "Compile.h"
#include "Output.h"

#include "mega/Analysis/CostModel.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/Diagnostics.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/xxhash.h"

#include <atomic>
#include <csignal>
#include <functional>
#include <mutex>
#include <numeric>
#include <thread>

using namespace mlir;
using namespace mega;
using namespace mega::explore;

static std::atomic<bool> stop{false};

bool mega::explore::interrupted() { return stop; }

void mega::explore::catchInterrupts() {
  // The second one ends the program as usual.
  auto handler = [](int signal) {
    stop = true;
    std::signal(signal, SIG_DFL);
  };
  std::signal(SIGINT, handler);
  std::signal(SIGTERM, handler);
}

std::string mega::explore::statePath(const Setting &setting) {
  return setting.folder + "/explore.json";
}

namespace {

/// The block in a context, ready to be compiled again and again.
class Worker {
public:
  explicit Worker(const Setting &setting)
      : setting(setting),
        context(registry(), MLIRContext::Threading::DISABLED) {
    context.printOpOnDiagnostic(false);
  }

  llvm::Error prepare() {
    auto choice = chooseMachine(context, setting.arch, setting.machinePath);
    if (!choice)
      return choice.takeError();
    machine = std::move(*choice);
    std::string message;
    ScopedDiagnosticHandler handler(&context, keepFirst(message));
    block = parseBlock(setting.blockPath, context);
    if (!block)
      return llvm::createStringError("cannot read " + setting.blockPath + ": " +
                                     message);
    return llvm::Error::success();
  }

  /// The compiled block, or the first diagnostic.
  llvm::Expected<CompiledKernel> compile(const CompileOptions &options) {
    std::string message;
    ScopedDiagnosticHandler handler(&context, keepFirst(message));
    FailureOr<CompiledKernel> kernel =
        compileBlock(*block, machine.target, options.emitter, options.schedule,
                     options.stages);
    if (failed(kernel))
      return llvm::createStringError(message);
    return std::move(*kernel);
  }

  /// Candidates of one lowering: it is made once, each one's text from it.
  void visit(llvm::MutableArrayRef<Candidate> group) {
    std::string message;
    ScopedDiagnosticHandler handler(&context, keepFirst(message));
    const CompileOptions &options = group.front().options;
    FailureOr<LoweredBlock> lowered =
        lowerBlock(*block, machine.target, options.schedule, options.stages);
    if (failed(lowered)) {
      for (Candidate &candidate : group)
        candidate.error = message;
      return;
    }
    TokenCost cost =
        predict(lowered->kernel, machine.costs,
                {machine.target.getCtas(), setting.subject.context});
    for (Candidate &candidate : group) {
      message.clear();
      FailureOr<EmittedKernel> emitted =
          emitCuda(lowered->kernel, candidate.options.emitter);
      if (failed(emitted)) {
        candidate.error = message;
        continue;
      }
      candidate.compiled = Compiled{
          cost.barriers,
          int64_t(cost.phases.size()),
          std::round(cost.totalUs * 100) / 100,
          int64_t(lowered->kernel.getWorkspaceBytes()),
          emitted->sharedBytes,
          llvm::utohexstr(llvm::xxh3_64bits(emitted->source), true, 16)};
    }
  }

  TargetAttr target() const { return machine.target; }

private:
  static const DialectRegistry &registry() {
    static const DialectRegistry dialects = [] {
      DialectRegistry made;
      made.insert<MegaDialect, arith::ArithDialect, math::MathDialect>();
      return made;
    }();
    return dialects;
  }

  static std::function<LogicalResult(Diagnostic &)>
  keepFirst(std::string &message) {
    return [&message](Diagnostic &diag) {
      if (message.empty() && diag.getSeverity() == DiagnosticSeverity::Error)
        message = diag.str();
      return success();
    };
  }

  const Setting &setting;
  MLIRContext context;
  MachineChoice machine;
  OwningOpRef<ModuleOp> block;
};

/// Calls `work` for each of `indices` from several threads, and `done` under a
/// lock after each; the first error stops all.
llvm::Error forEach(const Setting &setting, llvm::ArrayRef<size_t> indices,
                    const std::function<llvm::Error(Worker &, size_t)> &work,
                    const std::function<llvm::Error(size_t)> &done) {
  std::atomic<size_t> next{0};
  std::mutex mutex;
  llvm::Error failure = llvm::Error::success();
  bool failed = false;
  auto keep = [&](llvm::Error error) {
    if (error && !failed) {
      failure = std::move(error);
      failed = true;
    } else {
      llvm::consumeError(std::move(error));
    }
  };
  auto run = [&] {
    Worker worker(setting);
    llvm::Error prepared = worker.prepare();
    {
      std::lock_guard<std::mutex> lock(mutex);
      keep(std::move(prepared));
    }
    for (;;) {
      {
        std::lock_guard<std::mutex> lock(mutex);
        if (failed || interrupted())
          return;
      }
      size_t at = next++;
      if (at >= indices.size())
        return;
      llvm::Error error = work(worker, indices[at]);
      std::lock_guard<std::mutex> lock(mutex);
      keep(std::move(error));
      if (!failed)
        keep(done(indices[at]));
    }
  };
  std::vector<std::thread> threads;
  size_t count = std::min<size_t>(setting.jobs, indices.size());
  for (size_t i = 1; i < count; ++i)
    threads.emplace_back(run);
  if (count > 0)
    run();
  for (std::thread &thread : threads)
    thread.join();
  return failure;
}

} // namespace

/// Candidates that were not visited, those together that differ in nothing but
/// how they are emitted.
static std::vector<std::vector<size_t>>
openGroups(llvm::ArrayRef<Candidate> candidates) {
  llvm::StringMap<size_t> places;
  std::vector<std::vector<size_t>> groups;
  for (auto [index, candidate] : llvm::enumerate(candidates)) {
    if (candidate.visited())
      continue;
    CompileOptions lowering = candidate.options;
    lowering.emitter = {};
    auto [place, added] = places.try_emplace(describe(lowering), groups.size());
    if (added)
      groups.emplace_back();
    groups[place->second].push_back(index);
  }
  return groups;
}

llvm::Error mega::explore::compileAll(const Setting &setting,
                                      std::vector<Candidate> &candidates) {
  std::vector<std::vector<size_t>> groups = openGroups(candidates);
  size_t open = 0;
  for (const std::vector<size_t> &group : groups)
    open += group.size();
  Progress progress("compiling", candidates.size(), candidates.size() - open);
  // A worker's results appear in the list under the lock only.
  std::vector<std::vector<Candidate>> results(groups.size());
  std::vector<size_t> all(groups.size());
  std::iota(all.begin(), all.end(), 0);
  return forEach(
      setting, all,
      [&](Worker &worker, size_t at) {
        for (size_t index : groups[at])
          results[at].push_back(candidates[index]);
        worker.visit(results[at]);
        return llvm::Error::success();
      },
      [&](size_t at) {
        for (auto [index, result] : llvm::zip_equal(groups[at], results[at])) {
          candidates[index] = std::move(result);
          progress.step(describe(candidates[index].options));
        }
        return saveState(statePath(setting), setting.subject, candidates);
      });
}

llvm::Error mega::explore::assemble(const Setting &setting,
                                    std::vector<Candidate> &candidates,
                                    llvm::ArrayRef<size_t> chosen) {
  std::vector<size_t> open;
  for (size_t index : chosen)
    if (!candidates[index].assembled)
      open.push_back(index);
  Progress progress("assembling", chosen.size(), chosen.size() - open.size());
  std::vector<Assembled> results(candidates.size());
  return forEach(
      setting, open,
      [&](Worker &worker, size_t index) -> llvm::Error {
        auto kernel = worker.compile(candidates[index].options);
        if (!kernel)
          return kernel.takeError();
        auto program = compileImage(*kernel, worker.target().getArch(),
                                    megalith::NvrtcImage::Cubin);
        if (!program)
          return program.takeError();
        results[index] = {program->registers, program->spillBytes};
        return llvm::Error::success();
      },
      [&](size_t index) {
        candidates[index].assembled = results[index];
        progress.step(describe(candidates[index].options));
        return saveState(statePath(setting), setting.subject, candidates);
      });
}

/// Registers and spills of a bundle with one target, from its manifest.
static std::optional<Assembled> readAssembled(StringRef bundle) {
  auto value = readJson((bundle + "/manifest.json").str());
  if (!value) {
    llvm::consumeError(value.takeError());
    return std::nullopt;
  }
  const llvm::json::Object *object = value->getAsObject();
  const llvm::json::Array *targets =
      object ? object->getArray("targets") : nullptr;
  if (!targets || targets->empty() || !targets->front().getAsObject())
    return std::nullopt;
  const llvm::json::Object &target = *targets->front().getAsObject();
  return Assembled{target.getInteger("registers").value_or(0),
                   target.getInteger("spill_bytes").value_or(0)};
}

llvm::Error mega::explore::writeBundles(const Setting &setting,
                                        std::vector<Candidate> &candidates,
                                        llvm::ArrayRef<size_t> chosen) {
  if (std::error_code error =
          llvm::sys::fs::create_directories(setting.folder + "/bundles"))
    return fileError(error, "cannot create " + setting.folder + "/bundles");
  std::vector<size_t> open;
  for (size_t index : chosen)
    if (candidates[index].bundle.empty() ||
        !llvm::sys::fs::exists(setting.folder + "/" + candidates[index].bundle))
      open.push_back(index);
  Progress progress("bundles", chosen.size(), chosen.size() - open.size());
  auto nameOf = [&](size_t index) {
    return llvm::formatv("bundles/{0,0+3}.bundle", candidates[index].id).str();
  };
  llvm::Error failure = forEach(
      setting, open,
      [&](Worker &worker, size_t index) -> llvm::Error {
        auto kernel = worker.compile(candidates[index].options);
        if (!kernel)
          return kernel.takeError();
        return writeBundle(setting.folder + "/" + nameOf(index), *kernel,
                           {worker.target().getArch().str()}, /*ptxArchs=*/{});
      },
      [&](size_t index) {
        candidates[index].bundle = nameOf(index);
        candidates[index].assembled =
            readAssembled(setting.folder + "/" + nameOf(index));
        progress.step(describe(candidates[index].options));
        return saveState(statePath(setting), setting.subject, candidates);
      });
  if (failure)
    return failure;
  llvm::json::Array list;
  for (const Candidate &candidate : candidates)
    if (!candidate.bundle.empty())
      list.push_back(llvm::json::Object{
          {"id", candidate.id},
          {"bundle", candidate.bundle},
          {"what", describe(candidate.options)},
          {"barriers", candidate.compiled->barriers},
          {"predicted_us", candidate.compiled->predictedUs}});
  return writeJson(setting.folder + "/candidates.json",
                   llvm::json::Object{{"format", "megalith-candidates"},
                                      {"version", 1},
                                      {"candidates", std::move(list)}});
}
