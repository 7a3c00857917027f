// SPDX-License-Identifier: Apache-2.0
/// \file
/// Audits a bundle: a table of checks, one verdict. Exit code 0 if no check
/// failed.

#include "DescriptionOracle.h"
#include "Options.h"

#include "../common/OutputFile.h"
#include "../megalith-run/Tensors.h"

#include "llvm/Support/FileSystem.h"
#include "llvm/Support/raw_ostream.h"

using namespace mega;
using namespace mega::audit;

/// No kernel of a bundle takes this long; one that does hangs.
static constexpr std::chrono::seconds watchdog{20};

/// The instance under audit, on what the options say.
static std::unique_ptr<Subject>
makeSubject(const AuditOptions &options,
            std::shared_ptr<const megalith::Bundle> bundle,
            const TensorMap &weights) {
  int64_t rows = rowsFor(options.plan);
  if (options.sim)
    return SimSubject::create(std::move(bundle), weights, rows,
                              options.simChoices);
  CallLog::installTable();
  auto instance = megalith::take(megalith::Instance::create(
      std::move(bundle), options.source.device, rows));
  megalith::check(instance->bindTensors(weights));
  megalith::check(instance->weightsReady());
  return std::make_unique<GpuSubject>(std::move(instance), watchdog);
}

static llvm::Error write(const AuditOptions &options, const Audit &audit) {
  if (options.json != "-")
    llvm::outs() << tableOf(audit);
  if (options.json.empty())
    return llvm::Error::success();
  return writeFile(options.json, jsonOf(audit));
}

namespace {
/// A line on standard error, where that is a terminal: an audit on the
/// simulator takes minutes. It leaves nothing behind.
class ProgressLine {
public:
  ~ProgressLine() {
    if (shown)
      llvm::errs() << "\r\033[K";
  }
  void begin(const std::string &name, size_t index, size_t count) {
    check = "[" + std::to_string(index + 1) + "/" + std::to_string(count) +
            "] " + name;
    draw("");
  }
  void draw(const std::string &detail) {
    if (shown)
      llvm::errs() << "\r\033[K" << check << (detail.empty() ? "" : ": ")
                   << detail;
  }

private:
  bool shown = llvm::errs().is_displayed();
  std::string check;
};
} // namespace

/// The findings, with progress shown on the way.
static std::vector<Finding> runShown(Bench &bench) {
  ProgressLine line;
  bench.progress = [&](const std::string &detail) { line.draw(detail); };
  return runChecks(bench,
                   [&](const std::string &name, size_t index, size_t count) {
                     line.begin(name, index, count);
                   });
}

static llvm::Expected<bool> runAudit(const AuditOptions &options) {
  auto description = run::Description::load(options.source);
  if (!description)
    return description.takeError();
  auto bundle = (*description)->bundle();
  auto weights = run::loadWeights(options.source, bundle->manifest);
  if (!weights)
    return weights.takeError();
  std::unique_ptr<Oracle> oracle;
  if ((*description)->block()) {
    auto made = makeOracle(**description, *weights, options.source.threads);
    if (!made)
      return made.takeError();
    oracle = std::move(*made);
  }
  int most = bundle->manifest.maxCtas;
  if (options.sim && options.simChoices.ctas > most)
    return llvm::createStringError(
        "--sim-sms has value " + std::to_string(options.simChoices.ctas) +
        ", expected 1 to " + std::to_string(most) + ", the most CTAs of '" +
        bundle->manifest.block + "'");
  std::unique_ptr<Subject> subject;
  std::unique_ptr<Gpu> gpu;
  megalith::Status status = megalith::guard([&] {
    subject = makeSubject(options, bundle, *weights);
    if (!options.sim)
      gpu = std::make_unique<Gpu>(options.source.device);
  });
  if (!status.ok())
    return llvm::createStringError(status.message());

  Bench bench{options.plan, *subject, *weights, oracle.get()};
  if (gpu) {
    bench.gpuSubject = static_cast<GpuSubject *>(subject.get());
    bench.gpu = gpu.get();
  }
  Audit audit{options.source.bundle, bundle->manifest.block, subject->name(),
              runShown(bench)};
  if (llvm::Error error = write(options, audit))
    return error;
  return audit.passed();
}

/// Prints an error the way compilers do; the exit code.
static int report(llvm::Error error) {
  llvm::errs() << "megalith-audit: error: " << llvm::toString(std::move(error))
               << "\n";
  return 1;
}

int main(int argc, char **argv) {
  checkStandardOutput("megalith-audit");
  auto options = parseOptions(argc, argv);
  if (!options)
    return report(options.takeError());
  auto passed = runAudit(*options);
  if (!passed)
    return report(passed.takeError());
  return *passed ? 0 : 1;
}
