// SPDX-License-Identifier: Apache-2.0
/// \file
/// Stacks of many small threads, and the switch between them.

#ifndef MEGA_SIM_ENGINE_FIBER_H
#define MEGA_SIM_ENGINE_FIBER_H

#include <cstddef>
#include <cstdint>

namespace megalith::sim {

/// Equal stacks in one mapping. Memory is taken page by page as stacks grow.
class StackPool {
public:
  /// Throws RESOURCE_LIMIT.
  StackPool(size_t count, size_t bytes);
  ~StackPool();
  StackPool(const StackPool &) = delete;
  StackPool &operator=(const StackPool &) = delete;

  /// A stack pointer for switchFiber that starts `entry` on stack `index`.
  /// `entry` never returns.
  void *prepare(size_t index, void (*entry)());

  /// Whether stack `index` has never reached its last page.
  bool intact(size_t index) const;

private:
  uint8_t *base;
  size_t count, bytes;
};

/// Saves the running thread's stack pointer to `*from` and continues at `to`.
/// Keeps what the calling convention keeps; no signal masks, no x87 state.
extern "C" void megalithSimSwitch(void **from, void *to);

} // namespace megalith::sim

#endif
