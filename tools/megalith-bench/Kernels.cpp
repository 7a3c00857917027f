// SPDX-License-Identifier: Apache-2.0
/// \file
/// Where the measuring kernels come from.

#include "Kernels.h"

#include "Files.h"
#include "Gpu.h"

#include "mega/runtime/Nvrtc.h"

#include <fmt/format.h>

#include <string_view>
#include <utility>
#include <vector>

using namespace megalith;
using namespace megalith::bench;

namespace mega::detail {
/// kernels.cu, embedded by CMake: (file name, text).
std::vector<std::pair<std::string_view, std::string_view>> benchKernelFiles();
} // namespace mega::detail

std::string bench::kernelText() {
  return std::string(mega::detail::benchKernelFiles().front().second);
}

std::string bench::kernelImage(const std::string &arch,
                               const std::string &cubin) {
  if (!cubin.empty())
    return readWholeFile(cubin);
  Result<NvrtcProgram> program =
      compileCuda(kernelText(), "bench.cu", arch, NvrtcImage::Cubin);
  if (!program)
    throw BenchError(fmt::format(
        "the measuring kernels could not be compiled: {}; where there is no "
        "NVRTC, give --kernels=FILE as written by --write-kernels elsewhere",
        program.status().message()));
  return std::move(program->image);
}
