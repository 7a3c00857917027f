// SPDX-License-Identifier: Apache-2.0
/// \file
/// Enumerates and compares candidates.

#include "Candidate.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringSet.h"

using namespace mega;
using namespace mega::explore;

static int64_t differences(const CompileOptions &options) {
  CompileOptions plain;
  return llvm::count_if(knobs(), [&](const Knob &knob) {
    return knob.get(options) != knob.get(plain);
  });
}

std::vector<Candidate> mega::explore::enumerate() {
  std::vector<CompileOptions> all{CompileOptions()};
  for (const Knob &knob : knobs()) {
    std::vector<CompileOptions> next;
    for (const CompileOptions &base : all)
      for (const std::string &value : knob.values) {
        CompileOptions options = base;
        bool known = knob.set(options, value);
        assert(known && "a knob refuses its own value");
        (void)known;
        next.push_back(options);
      }
    all = std::move(next);
  }
  CompileOptions plain;
  std::vector<Candidate> candidates;
  for (const CompileOptions &options : all) {
    bool repeats = llvm::any_of(knobs(), [&](const Knob &knob) {
      return knob.idle(options) && knob.get(options) != knob.get(plain);
    });
    if (repeats)
      continue;
    candidates.emplace_back();
    candidates.back().options = options;
  }
  llvm::stable_sort(candidates, [](const Candidate &a, const Candidate &b) {
    return differences(a.options) < differences(b.options);
  });
  for (auto [id, candidate] : llvm::enumerate(candidates))
    candidate.id = id;
  return candidates;
}

std::string mega::explore::describe(const CompileOptions &options) {
  CompileOptions plain;
  std::string text;
  for (const Knob &knob : knobs())
    if (std::string value = knob.get(options); value != knob.get(plain))
      text += (text.empty() ? "" : " ") + knob.name.str() + "=" + value;
  return text.empty() ? "default" : text;
}

std::vector<size_t>
mega::explore::distinct(llvm::ArrayRef<Candidate> candidates) {
  llvm::StringSet<> seen;
  std::vector<size_t> result;
  for (auto [index, candidate] : llvm::enumerate(candidates))
    if (candidate.compiled &&
        seen.insert(candidate.compiled->kernelHash).second)
      result.push_back(index);
  return result;
}

std::vector<size_t>
mega::explore::paretoFront(llvm::ArrayRef<Candidate> candidates,
                           llvm::ArrayRef<size_t> among) {
  std::vector<size_t> order(among.begin(), among.end());
  auto key = [&](size_t index) {
    const Compiled &c = *candidates[index].compiled;
    return std::tuple(c.predictedUs, c.barriers, index);
  };
  llvm::sort(order, [&](size_t a, size_t b) { return key(a) < key(b); });
  std::vector<size_t> front;
  for (size_t index : order)
    if (front.empty() || candidates[index].compiled->barriers <
                             candidates[front.back()].compiled->barriers)
      front.push_back(index);
  return front;
}

std::optional<size_t>
mega::explore::fastest(llvm::ArrayRef<Candidate> candidates,
                       llvm::ArrayRef<size_t> among) {
  bool measured = llvm::any_of(among, [&](size_t index) {
    return candidates[index].measuredUs.has_value();
  });
  std::optional<size_t> best;
  auto time = [&](size_t index) {
    return measured ? *candidates[index].measuredUs
                    : candidates[index].compiled->predictedUs;
  };
  for (size_t index : among)
    if (!measured || candidates[index].measuredUs)
      if (!best || time(index) < time(*best))
        best = index;
  return best;
}
