// SPDX-License-Identifier: Apache-2.0
/// \file
/// Independent work items on a few threads.

#include "Parallel.h"

#include <algorithm>
#include <atomic>
#include <thread>
#include <vector>

void mega::reference::parallelFor(int64_t count, unsigned threads,
                                  llvm::function_ref<void(int64_t)> body) {
  std::atomic<int64_t> next(0);
  auto work = [&] {
    for (int64_t i = next++; i < count; i = next++)
      body(i);
  };
  int64_t helpers = std::min<int64_t>(threads, count) - 1;
  std::vector<std::thread> pool;
  for (int64_t i = 0; i < helpers; ++i)
    pool.emplace_back(work);
  work();
  for (std::thread &thread : pool)
    thread.join();
}
