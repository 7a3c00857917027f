// SPDX-License-Identifier: Apache-2.0
/// \file
/// The oracle: what a level-0 block means, op by op, on the host.
///
/// Contract. Every result is rounded once, to its element type, where it is
/// produced; all arithmetic inside an op is f32 (transcendental functions are
/// evaluated in f64 and rounded to f32). Relaxations such as `absorb` are not
/// used. Sums run in a fixed, blocked order, so results depend neither on the
/// number of threads nor on the vector width of the machine.

#ifndef MEGA_REFERENCE_INTERPRETER_H
#define MEGA_REFERENCE_INTERPRETER_H

#include "mega/IR/Mega.h"
#include "mega/Reference/Tensor.h"

#include "mlir/IR/BuiltinOps.h"
#include "llvm/ADT/StringMap.h"

#include <memory>

namespace mega::reference {

/// Checkpoint tensors by name.
using TensorViews = llvm::StringMap<TensorView>;

/// What a router with a `probe` name chose in the last step.
struct RouterProbe {
  std::string name;
  /// The choice, best first.
  std::vector<int32_t> ids;
  /// The best expert not chosen; -1 if all are.
  int32_t runnerUp = -1;
  /// Logit of the last choice minus logit of the runner-up: how far the choice
  /// is from a tie. Infinite without a runner-up.
  float gap = 0;
  std::vector<float> logits;
};

/// The checkpoint tensors of a weight, in the order codes, scales, zeros.
std::vector<TensorSpec> tensorsOf(WeightOp weight);

/// The element type and shape of a state; a cache gets `rows` rows.
TensorSpec tensorOf(StateOp state, int64_t rows);

/// The module's only mega.block; an error at the module if there is not
/// exactly one.
mlir::FailureOr<BlockOp> findBlock(mlir::ModuleOp module);

/// Interprets one mega.block.
class Interpreter {
public:
  /// Checks that `weights` has every checkpoint tensor of the block's module
  /// (others are ignored) and that every op has a meaning here; errors are
  /// diagnostics at the op. Views are kept, not copied. Fixed states start
  /// zeroed, caches empty, the position is 0. `threads` 0 means all cores.
  static mlir::FailureOr<std::unique_ptr<Interpreter>>
  create(BlockOp block, const TensorViews &weights, unsigned threads = 0);

  ~Interpreter();
  Interpreter(const Interpreter &) = delete;
  Interpreter &operator=(const Interpreter &) = delete;

  /// Copies a state. A cache may have any number of rows here; a step wants
  /// as many as the position.
  mlir::LogicalResult setState(llvm::StringRef name, const TensorView &view);

  /// Sets the number of tokens seen.
  mlir::LogicalResult setPosition(int64_t position);

  /// Whether ops use the relaxations that they permit (mega.latent_attention's
  /// `absorb`). Off, the default, every rounding of the description happens.
  void honourRelaxations(bool honour);

  /// The number of tokens seen.
  int64_t position() const;

  /// One token: returns the block's result, updates every state and adds 1 to
  /// the position. `hidden` must have the argument's size; it is rounded to
  /// the argument's element type.
  mlir::FailureOr<std::vector<float>> step(llvm::ArrayRef<float> hidden);

  /// A state's value; null for an unknown name.
  const StateValue *state(llvm::StringRef name) const;

  /// What the probed routers chose in the last step, in program order.
  llvm::ArrayRef<RouterProbe> probes() const;

  /// The block.
  BlockOp block() const;

private:
  struct Impl;
  explicit Interpreter(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl;
};

} // namespace mega::reference

#endif // MEGA_REFERENCE_INTERPRETER_H
