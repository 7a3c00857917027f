// SPDX-License-Identifier: Apache-2.0
/// \file
/// The measuring kernels as text and as cubins.

#ifndef MEGALITH_TOOLS_BENCH_KERNELS_H
#define MEGALITH_TOOLS_BENCH_KERNELS_H

#include <string>

namespace megalith::bench {

/// kernels.cu, as it was when this program was built.
std::string kernelText();

/// The kernels for `arch`: the file `cubin` if that is not empty, else compiled
/// by NVRTC. Throws BenchError.
std::string kernelImage(const std::string &arch, const std::string &cubin);

} // namespace megalith::bench

#endif // MEGALITH_TOOLS_BENCH_KERNELS_H
