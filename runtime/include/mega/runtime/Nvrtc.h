// SPDX-License-Identifier: Apache-2.0
//
// Compiles CUDA C++ with NVRTC, which is opened at run time.

#ifndef MEGA_RUNTIME_NVRTC_H
#define MEGA_RUNTIME_NVRTC_H

#include "mega/runtime/Status.h"

#include <string>
#include <vector>

namespace megalith {

/// What NVRTC made of one source for one architecture.
struct NvrtcProgram {
  std::string image;  ///< cubin, or PTX text
  std::string log;    ///< warnings, and ptxas' resource report
  int registers = 0;  ///< a thread; 0 for PTX
  int spillBytes = 0; ///< spill stores plus loads, a thread
  int stackBytes = 0; ///< stack frame, a thread
};

/// What to ask NVRTC for.
enum class NvrtcImage { Cubin, Ptx };

/// Compiles `source` for `arch` ("sm_90a"). NVRTC is `library` if that is not
/// empty, else $MEGALITH_NVRTC, else libnvrtc of the loader's path or of
/// $CUDA_HOME or /usr/local/cuda. Fails with NVRTC's log attached, and with a
/// list of the places tried if there is no NVRTC.
Result<NvrtcProgram> compileCuda(const std::string &source,
                                 const std::string &name,
                                 const std::string &arch, NvrtcImage image,
                                 const std::string &library = "");

} // namespace megalith

#endif
