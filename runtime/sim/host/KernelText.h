// SPDX-License-Identifier: Apache-2.0
/// \file
/// What the simulator must know of emitted text: which idioms it embeds and
/// with which instructions, its entry point, its phases and counters. Nothing
/// is changed.

#ifndef MEGA_SIM_HOST_KERNELTEXT_H
#define MEGA_SIM_HOST_KERNELTEXT_H

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace megalith::sim {

/// An instruction of an idiom, or its call of __syncthreads or __syncwarp.
struct TextInstruction {
  std::string function; ///< "Struct::function", or "function"
  /// Instructions of the function before it.
  int index;
  std::string opcode;
};

/// Facts of a kernel's text.
struct KernelText {
  /// Names of the fenced idiom files, such as "bf16.cuh", in their order.
  std::vector<std::string> idioms;
  std::vector<TextInstruction> instructions;
  /// The __global__ function, and its parameter's type.
  std::string entry, parameter;
  /// By phase: its stages with their source locations, from comments.
  std::vector<std::vector<std::string>> phases;
  /// The pairs of stages that counters at an offset of the workspace order,
  /// from comments; " or " between those that take turns at it.
  std::map<uint64_t, std::string> counters;
  std::vector<std::string> lines;
};

/// Throws BAD_FORMAT for text that is not a kernel.
KernelText readKernelText(const std::string &text);

} // namespace megalith::sim

#endif
