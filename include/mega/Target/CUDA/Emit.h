// SPDX-License-Identifier: Apache-2.0
/// \file
/// A level-3 kernel as CUDA C++ text.

#ifndef MEGA_TARGET_CUDA_EMIT_H
#define MEGA_TARGET_CUDA_EMIT_H

#include "mega/IR/Mega.h"
#include "mega/Target/CUDA/EmitterOptions.h"

#include <string>

namespace mega {

/// What the emitter made.
struct EmittedKernel {
  std::string source;      ///< one self-contained translation unit
  std::string entry;       ///< name of the __global__ function
  int64_t sharedBytes = 0; ///< dynamic shared memory a CTA
  /// Bytes of clock stamps behind the workspace: for each phase and CTA, the
  /// low 32 bits of the SM clock at its start and at its end. 0 if not asked.
  int64_t stampBytes = 0;
  /// Weight bytes each phase reads, in phase order.
  llvm::SmallVector<int64_t> phaseBytes;
};

/// Emits `kernel`. The IR is not changed; what cannot be emitted is a located
/// error. The same kernel and options give the same bytes.
mlir::FailureOr<EmittedKernel> emitCuda(KernelOp kernel,
                                        const EmitterOptions &options);

/// States that the kernel takes, in the order of the parameter block.
llvm::SmallVector<StateOp> kernelStates(KernelOp kernel);

} // namespace mega

#endif // MEGA_TARGET_CUDA_EMIT_H
