// SPDX-License-Identifier: Apache-2.0
/// \file
/// A bar on standard error, where that is a terminal.

#ifndef MEGALITH_TOOLS_EXPLORE_PROGRESS_H
#define MEGALITH_TOOLS_EXPLORE_PROGRESS_H

#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/raw_ostream.h"

#include <chrono>
#include <string>

namespace mega::explore {

class Progress {
public:
  Progress(std::string what, size_t total, size_t done)
      : what(std::move(what)), total(total), done(done), before(done),
        shown(llvm::errs().is_displayed()) {
    draw("");
  }
  /// Leaves the line empty.
  ~Progress() {
    if (shown)
      llvm::errs() << "\r\033[K";
  }

  /// One more is done; `item` says which.
  void step(const std::string &item) {
    ++done;
    draw(item);
  }

private:
  void draw(const std::string &item) {
    if (!shown || total == 0)
      return;
    constexpr size_t kWidth = 24;
    size_t full = done * kWidth / total;
    std::chrono::duration<double> passed =
        std::chrono::steady_clock::now() - begin;
    std::string left;
    if (done > before)
      left = llvm::formatv(", {0:f0} s left", passed.count() /
                                                  double(done - before) *
                                                  double(total - done));
    std::string line = llvm::formatv(
        "{0} [{1}{2}] {3}/{4}{5}  {6}", what, std::string(full, '#'),
        std::string(kWidth - full, '.'), done, total, left, item);
    llvm::errs() << "\r\033[K" << line.substr(0, 110);
  }

  std::string what;
  size_t total, done, before;
  bool shown;
  std::chrono::steady_clock::time_point begin =
      std::chrono::steady_clock::now();
};

} // namespace mega::explore

#endif // MEGALITH_TOOLS_EXPLORE_PROGRESS_H
