// SPDX-License-Identifier: Apache-2.0
/// \file
/// How fast the device reads memory: the roofline.

#ifndef MEGALITH_TOOLS_BENCH_STREAM_H
#define MEGALITH_TOOLS_BENCH_STREAM_H

#include "Gpu.h"

namespace megalith::bench {

/// A buffer of random words and a kernel that reads it.
class ReadStream {
public:
  /// `bytes` is a multiple of 1 MiB.
  ReadStream(Gpu &gpu, uint64_t bytes);
  ~ReadStream();
  ReadStream(const ReadStream &) = delete;
  ReadStream &operator=(const ReadStream &) = delete;

  uint64_t bytes() const { return size; }
  /// The random bytes, for other kernels to read.
  uint64_t address() const { return data; }

  /// Passes over `mib` MiB with each grid, back to back; keeps the rates.
  void measure(uint64_t mib);

  /// GB/s of the grid whose median pass is fastest; 0 before measure.
  double rate() const;

  /// Forgets all rates.
  void clear() { rates.clear(); }

private:
  Gpu &gpu;
  uint64_t size = 0, data = 0, sink = 0, place = 0;
  std::vector<std::vector<double>> rates; ///< by grid
};

} // namespace megalith::bench

#endif // MEGALITH_TOOLS_BENCH_STREAM_H
