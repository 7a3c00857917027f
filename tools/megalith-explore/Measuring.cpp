// SPDX-License-Identifier: Apache-2.0
/// \file
/// Calls the bench, reads its results, compares them with predictions.

#include "Measuring.h"

#include "JsonFile.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/Program.h"

#include <cmath>

using namespace mega;
using namespace mega::explore;
namespace json = llvm::json;

llvm::Error mega::explore::runBench(llvm::StringRef program,
                                    llvm::StringRef folder, int64_t context,
                                    llvm::StringRef jsonPath) {
  auto bench = llvm::sys::findProgramByName(
      "megalith-bench", {llvm::sys::path::parent_path(program)});
  if (!bench)
    bench = llvm::sys::findProgramByName("megalith-bench");
  if (!bench)
    return llvm::createStringError(
        "megalith-bench is neither beside this program nor in PATH");
  std::string candidates = ("--candidates=" + folder).str();
  std::string contexts = "--context=" + std::to_string(context);
  std::string output = ("--json=" + jsonPath).str();
  std::string message;
  int code =
      llvm::sys::ExecuteAndWait(*bench, {*bench, candidates, contexts, output},
                                std::nullopt, {}, 0, 0, &message);
  if (code != 0)
    return llvm::createStringError("measuring failed: megalith-bench ended "
                                   "with " +
                                   std::to_string(code) +
                                   (message.empty() ? "" : ", " + message));
  return llvm::Error::success();
}

llvm::Error mega::explore::readTimes(llvm::StringRef path, int64_t context,
                                     std::vector<Candidate> &candidates) {
  auto root =
      readJsonObject(path, "megalith-bench",
                     "what megalith-bench --candidates=DIR --json=FILE writes");
  if (!root)
    return root.takeError();
  // Folders move between machines: the bundle's own name says which it is.
  llvm::StringMap<Candidate *> byName;
  for (Candidate &candidate : candidates)
    if (!candidate.bundle.empty())
      byName[llvm::sys::path::filename(candidate.bundle)] = &candidate;
  size_t found = 0;
  if (const json::Array *bundles = root->getArray("bundles"))
    for (const json::Value &entry : *bundles) {
      const json::Object *bundle = entry.getAsObject();
      const json::Array *rows = bundle ? bundle->getArray("contexts") : nullptr;
      Candidate *candidate =
          rows ? byName.lookup(llvm::sys::path::filename(
                     bundle->getString("bundle").value_or("")))
               : nullptr;
      if (!candidate)
        continue;
      for (const json::Value &row : *rows)
        if (const json::Object *times = row.getAsObject())
          if (times->getInteger("context") == context)
            if (std::optional<double> us = times->getNumber("us")) {
              candidate->measuredUs = us;
              ++found;
            }
    }
  if (found == 0)
    return llvm::createStringError(
        path + " has no time of a candidate with a bundle here at context " +
        std::to_string(context));
  return llvm::Error::success();
}

/// Places of the values in ascending order; equal ones share their mean.
static std::vector<double> ranksOf(llvm::ArrayRef<double> values) {
  std::vector<double> ranks;
  for (double value : values) {
    double below = llvm::count_if(values, [&](double v) { return v < value; });
    double equal = llvm::count(values, value);
    ranks.push_back(below + (equal - 1) / 2);
  }
  return ranks;
}

Agreement mega::explore::agreementOf(llvm::ArrayRef<Candidate> candidates) {
  std::vector<double> predicted, measured, errors;
  for (const Candidate &candidate : candidates)
    if (candidate.compiled && candidate.measuredUs) {
      predicted.push_back(candidate.compiled->predictedUs);
      measured.push_back(*candidate.measuredUs);
      errors.push_back(std::abs(predicted.back() - measured.back()) /
                       measured.back());
    }
  Agreement agreement;
  agreement.count = errors.size();
  if (errors.empty())
    return agreement;
  llvm::sort(errors);
  agreement.medianError = errors[errors.size() / 2];
  std::vector<double> x = ranksOf(predicted), y = ranksOf(measured);
  double mean = double(x.size() - 1) / 2, xy = 0, xx = 0, yy = 0;
  for (auto [a, b] : llvm::zip_equal(x, y)) {
    xy += (a - mean) * (b - mean);
    xx += (a - mean) * (a - mean);
    yy += (b - mean) * (b - mean);
  }
  agreement.rankCorrelation = xx > 0 && yy > 0 ? xy / std::sqrt(xx * yy) : 0;
  return agreement;
}
