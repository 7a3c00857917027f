// SPDX-License-Identifier: Apache-2.0
/// \file
/// Kernels of a few lines for tests of single rules of the simulator.

#ifndef MEGA_TEST_SIM_TINYKERNEL_H
#define MEGA_TEST_SIM_TINYKERNEL_H

#include "mega/runtime/Simulator.h"

#include <gtest/gtest.h>

#include <string>

/// What a tiny kernel may touch: 256 ints of constants, state, output and
/// workspace, and the workspace's first words as variables.
struct TinyParams {
  const int *constants;
  int *state, *output, *workspace;
};

/// Runs `body` as a kernel with `Params p` and `mega::u8 *shared` in scope;
/// `idioms` are idiom files as in emitted text, behind bf16, memory and place;
/// `ahead` stands before the kernel.
class TinyKernel {
public:
  explicit TinyKernel(const std::string &body, megalith::SimShape shape,
                      const std::string &idioms = "",
                      const megalith::SimCompileOptions &options = {},
                      const std::string &ahead = "");

  /// The same for text that `textFor` has made, and that was edited since.
  static TinyKernel ofText(const std::string &text, megalith::SimShape shape,
                           const megalith::SimCompileOptions &options);
  static std::string textFor(const std::string &body, const std::string &idioms,
                             const std::string &ahead = "");

  /// One launch; launches of one object are one history.
  megalith::SimRun run(megalith::SimOptions options = {});

  const int *output() {
    return reinterpret_cast<const int *>(machine->data(2));
  }
  int *constants() { return reinterpret_cast<int *>(machine->data(0)); }
  int *state() { return reinterpret_cast<int *>(machine->data(1)); }

private:
  TinyKernel() = default;

  std::unique_ptr<megalith::SimMachine> machine;
};

/// Text of a fenced idiom file in the form that the emitter gives it.
std::string idiomText(const std::string &file);

/// Expects exactly one kind of report, whose text has all these parts.
void expectReport(const megalith::SimRun &run, megalith::SimReport::Kind kind,
                  std::initializer_list<const char *> parts = {});

#endif
