// SPDX-License-Identifier: Apache-2.0
/// \file
/// Tables that a launch copies to shared memory, where its stages read them:
/// constant memory is cold at each stage's first access. Operands lie at
/// offsets from what only the launch knows, and are addresses once they are
/// copied.

namespace mega {

/// Where an operand lies.
struct Operand {
  u64 word; ///< what it is an offset from, in the top byte, and the offset

  enum From { kWorkspace, kWeights, kState };
};
__device__ constexpr Operand inWorkspace(u64 offset) {
  return {u64(Operand::kWorkspace) << 56 | offset};
}
__device__ constexpr Operand inWeights(u64 offset) {
  return {u64(Operand::kWeights) << 56 | offset};
}
/// State number `index`, whole.
__device__ constexpr Operand inState(u64 index) {
  return {u64(Operand::kState) << 56 | index};
}

/// Puts the operands' addresses into shared memory, by the whole CTA in one
/// trip to memory. `state(i)` is the address of state number i.
template <int kOperands, typename State>
__device__ __forceinline__ void
resolveOperands(u8 *to, const Operand (&operands)[kOperands], u8 *workspace,
                const u8 *weights, const State &state) {
#pragma unroll 1
  for (int i = threadIdx.x; i < kOperands; i += int(blockDim.x)) {
    const u64 word = operands[i].word, offset = word << 8 >> 8;
    const int from = int(word >> 56);
    reinterpret_cast<const void **>(to)[i] =
        from == Operand::kState     ? state(int(offset))
        : from == Operand::kWeights ? weights + offset
                                    : workspace + offset;
  }
}

} // namespace mega
