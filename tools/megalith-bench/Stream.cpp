// SPDX-License-Identifier: Apache-2.0
/// \file
/// The read stream.

#include "Stream.h"

#include "Statistics.h"

#include <algorithm>

using namespace megalith::bench;

namespace {
/// CTAs an SM and threads a CTA: which of them streams fastest differs between
/// GPUs.
struct Grid {
  int ctasPerSm, threads;
  const char *kernel;
};
constexpr Grid kGrids[] = {{1, 1024, "bench_stream_deep"},
                           {2, 1024, "bench_stream_wide"},
                           {4, 512, "bench_stream_wide"}};
constexpr uint64_t kMib = 1 << 20;
constexpr int kPasses = 2;
} // namespace

ReadStream::ReadStream(Gpu &gpu, uint64_t bytes)
    : gpu(gpu), size(bytes), data(gpu.allocate(bytes)),
      sink(gpu.allocate(256)) {
  gpu.launch({"bench_fill", 4 * gpu.facts().sms, 512, 0, {data, size / 16}});
}

ReadStream::~ReadStream() {
  gpu.free(data);
  gpu.free(sink);
}

void ReadStream::measure(uint64_t mib) {
  rates.resize(std::size(kGrids));
  uint64_t bytes = std::min(mib * kMib, size);
  for (size_t index = 0; index < std::size(kGrids); ++index) {
    const Grid &grid = kGrids[index];
    double us = gpu.timeAll(kPasses, [&](int) {
      // Elsewhere each time, so that short passes do not find L2 full of it.
      if (place + bytes > size)
        place = 0;
      gpu.launch({grid.kernel,
                  grid.ctasPerSm * gpu.facts().sms,
                  grid.threads,
                  0,
                  {data + place, bytes / 16, sink}});
      place += bytes;
    });
    rates[index].push_back(double(bytes) / us / 1e3);
  }
}

double ReadStream::rate() const {
  double best = 0;
  for (const std::vector<double> &ofGrid : rates)
    best = std::max(best, median(ofGrid));
  return best;
}
