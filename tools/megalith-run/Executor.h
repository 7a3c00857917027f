// SPDX-License-Identifier: Apache-2.0
/// \file
/// Something that can run a block: the interpreter, or a kernel on a GPU or on
/// the simulator.

#ifndef MEGA_TOOLS_RUN_EXECUTOR_H
#define MEGA_TOOLS_RUN_EXECUTOR_H

#include "Description.h"

#include "mega/runtime/TensorMap.h"

#include <limits>

namespace mega::run {

/// What a router chose.
struct Choice {
  std::string probe;
  std::vector<int32_t> ids;
  /// How far the reference is from another choice; NaN if not known.
  float gap = std::numeric_limits<float>::quiet_NaN();
};

/// Mean microseconds of a step.
struct StepTime {
  double device = 0;  ///< between events, back to back
  double enqueue = 0; ///< of the host, for the call that launches it
};

/// Runs one block, many times over.
class Executor {
public:
  virtual ~Executor() = default;

  /// Puts state and position where a run starts.
  virtual llvm::Error begin(const megalith::TensorMap &states,
                            int64_t position) = 0;

  /// One token.
  virtual llvm::Expected<megalith::Tensor>
  step(const megalith::Tensor &hidden) = 0;

  /// What the routers chose in the last step.
  virtual llvm::Expected<std::vector<Choice>> choices() = 0;

  /// A state as it is now.
  virtual llvm::Expected<megalith::Tensor>
  state(const megalith::StateDesc &desc) = 0;

  /// Times `count` more steps back to back; zeros if this executor has no clock
  /// of its own.
  virtual llvm::Expected<StepTime> timeSteps(const megalith::Tensor &hidden,
                                             int64_t count) {
    return StepTime();
  }

  /// Who runs: "reference", the device's name, or "simulator" and its choices.
  virtual std::string name() const = 0;
};

/// The interpreter on the description's text. `weights` must outlive it.
llvm::Expected<std::unique_ptr<Executor>>
makeReferenceExecutor(const Description &description,
                      const megalith::TensorMap &weights, unsigned threads,
                      bool relaxed);

/// The bundle's kernel on a device, with room for `rows` rows in each cache.
llvm::Expected<std::unique_ptr<Executor>>
makeCudaExecutor(const Description &description,
                 const megalith::TensorMap &weights, int device, int64_t rows);

/// The kernel's text on the simulator: the bundle's, or the description's,
/// compiled here. A step fails if the simulator reports anything.
llvm::Expected<std::unique_ptr<Executor>>
makeSimExecutor(const Description &description,
                const megalith::TensorMap &weights, const SimChoices &choices,
                int64_t rows);

} // namespace mega::run

#endif // MEGA_TOOLS_RUN_EXECUTOR_H
