// SPDX-License-Identifier: Apache-2.0

#include "Parallel.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>
#include <system_error>
#include <thread>
#include <vector>

using namespace megalith;

void megalith::parallelFor(
    uint64_t count, uint64_t grain, unsigned threads,
    const std::function<void(uint64_t, uint64_t)> &body) {
  if (threads == 0)
    threads = std::max(1u, std::thread::hardware_concurrency());
  uint64_t ranges = (count + grain - 1) / grain;
  threads = unsigned(std::min<uint64_t>(threads, ranges));

  std::atomic<uint64_t> next{0};
  std::mutex mutex;
  std::exception_ptr failure;
  auto work = [&] {
    for (uint64_t range; (range = next.fetch_add(1)) < ranges;) {
      try {
        body(range * grain, std::min(count, (range + 1) * grain));
      } catch (...) {
        std::lock_guard<std::mutex> lock(mutex);
        if (!failure)
          failure = std::current_exception();
        next.store(ranges);
      }
    }
  };

  std::vector<std::thread> pool;
  pool.reserve(threads);
  try {
    while (pool.size() + 1 < threads)
      pool.emplace_back(work);
  } catch (const std::system_error &) {
    // Fewer threads than asked for: those that run take all ranges.
  }
  work();
  for (std::thread &thread : pool)
    thread.join();
  if (failure)
    std::rethrow_exception(failure);
}
