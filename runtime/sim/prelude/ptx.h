// SPDX-License-Identifier: Apache-2.0
/// \file
/// The machine instructions that the text's idioms use, as the text has them:
/// twins take memory orders, scopes and cache operators from there and not from
/// a copy, so that a weaker instruction in the text is a weaker twin.

#ifndef MEGA_SIM_PRELUDE_PTX_H
#define MEGA_SIM_PRELUDE_PTX_H

#include "engine.h"

namespace mega {
namespace sim {

/// Instruction `index` of the idiom `function` ("Struct::function" or
/// "function"), or a call of __syncthreads or __syncwarp before it.
struct Instruction {
  const char *function;
  int index;
  const char *opcode;
};

constexpr bool same(const char *a, const char *b) {
  while (*a != 0 && *a == *b)
    ++a, ++b;
  return *a == *b;
}

/// Whether the opcode has `.part` followed by a dot or its end.
constexpr bool hasPart(const char *opcode, const char *part) {
  for (; *opcode != 0; ++opcode) {
    if (*opcode != '.')
      continue;
    const char *a = opcode + 1, *b = part;
    while (*b != 0 && *a == *b)
      ++a, ++b;
    if (*b == 0 && (*a == 0 || *a == '.' || *a == ':'))
      return true;
  }
  return false;
}

template <unsigned kCount>
constexpr const char *opcodeIn(const Instruction (&list)[kCount],
                               const char *function, int index) {
  for (const Instruction &instruction : list)
    if (instruction.function != nullptr &&
        same(instruction.function, function) && instruction.index == index &&
        instruction.opcode[0] != '_')
      return instruction.opcode;
  return nullptr;
}

/// Whether the function calls `call` right before its instruction `index`.
template <unsigned kCount>
constexpr bool callsIn(const Instruction (&list)[kCount], const char *function,
                       int index, const char *call) {
  for (const Instruction &instruction : list)
    if (instruction.function != nullptr &&
        same(instruction.function, function) && instruction.index == index &&
        same(instruction.opcode, call))
      return true;
  return false;
}

constexpr Order orderOf(const char *opcode) {
  return hasPart(opcode, "acq_rel")   ? Order::AcquireRelease
         : hasPart(opcode, "acquire") ? Order::Acquire
         : hasPart(opcode, "release") ? Order::Release
                                      : Order::Relaxed;
}

constexpr Scope scopeOf(const char *opcode) {
  return hasPart(opcode, "cta")       ? Scope::Cta
         : hasPart(opcode, "cluster") ? Scope::Cluster
         : hasPart(opcode, "sys")     ? Scope::System
                                      : Scope::Gpu;
}

constexpr LoadKind loadKindOf(const char *opcode) {
  return hasPart(opcode, "nc")   ? LoadKind::Constant
         : hasPart(opcode, "cg") ? LoadKind::L2
                                 : LoadKind::Plain;
}

} // namespace sim
} // namespace mega

/// The opcode of instruction `index` of an idiom; an error if the text's idiom
/// has none, for then the twin no longer mirrors it.
#define MEGA_SIM_OPCODE(name, function, index)                                 \
  constexpr const char *name =                                                 \
      mega::sim::opcodeIn(mega::sim::kTextInstructions, function, index);      \
  static_assert(name != nullptr,                                               \
                "the text's " function                                         \
                " lacks an instruction that its host twin expects")

/// __syncthreads or __syncwarp where the text's idiom calls it: before its
/// instruction `index`.
#define MEGA_SIM_SYNC(call, function, index)                                   \
  if constexpr (mega::sim::callsIn(mega::sim::kTextInstructions, function,     \
                                   index, #call))                              \
  call()

#endif // MEGA_SIM_PRELUDE_PTX_H
