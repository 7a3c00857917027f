// SPDX-License-Identifier: Apache-2.0
/// \file
/// The CUDA C++ that kernel text uses beyond the idioms, in plain C++.

#ifndef MEGA_SIM_PRELUDE_CUDA_H
#define MEGA_SIM_PRELUDE_CUDA_H

#include "engine.h"

#include <math.h>

extern "C" {
/// Set by the engine before the first thread runs.
extern __attribute__((visibility("default")))
const mega::sim::Api *mega_sim_api;
extern __attribute__((
    visibility("default"))) mega::sim::Registers mega_sim_registers;
}

#define __device__
#define __global__
#define __constant__
#define __host__
#define __restrict__
#define __forceinline__ inline
#define __noinline__
/// Of idioms' twins: reports then name their callers.
#define MEGA_SIM_INLINE inline __attribute__((always_inline))
#define __launch_bounds__(...)
#define __grid_constant__
#define __align__(bytes) __attribute__((aligned(bytes)))
// `extern __shared__ T shared[];` becomes a pointer to the CTA's window: the
// text's own declaration ends up alone in a scope that is never entered.
#define __shared__                                                             \
  int mega_sim_unused;                                                         \
  unsigned char *const shared = mega_sim_registers.shared;                     \
  if (false)                                                                   \
  extern

#define threadIdx (mega_sim_registers.threadIdx)
#define blockIdx (mega_sim_registers.blockIdx)
#define blockDim (mega_sim_registers.blockDim)
#define gridDim (mega_sim_registers.gridDim)

struct alignas(8) float2 {
  float x, y;
};
struct alignas(16) float4 {
  float x, y, z, w;
};
struct alignas(8) uint2 {
  unsigned x, y;
};
struct alignas(16) uint4 {
  unsigned x, y, z, w;
};
struct alignas(8) int2 {
  int x, y;
};
struct alignas(16) int4 {
  int x, y, z, w;
};

struct alignas(16) double2 {
  double x, y;
};
struct float3 {
  float x, y, z;
};
struct uint3 {
  unsigned x, y, z;
};
struct alignas(16) ulonglong2 {
  unsigned long long x, y;
};
struct alignas(16) longlong2 {
  long long x, y;
};
inline float2 make_float2(float x, float y) { return {x, y}; }
inline float4 make_float4(float x, float y, float z, float w) {
  return {x, y, z, w};
}
inline uint2 make_uint2(unsigned x, unsigned y) { return {x, y}; }
inline uint4 make_uint4(unsigned x, unsigned y, unsigned z, unsigned w) {
  return {x, y, z, w};
}
inline double2 make_double2(double x, double y) { return {x, y}; }

inline float __uint_as_float(unsigned bits) {
  float value;
  __builtin_memcpy(&value, &bits, 4);
  return value;
}
inline unsigned __float_as_uint(float value) {
  unsigned bits;
  __builtin_memcpy(&bits, &value, 4);
  return bits;
}
inline float __int_as_float(int bits) {
  return __uint_as_float(unsigned(bits));
}
inline int __float_as_int(float value) { return int(__float_as_uint(value)); }

/// Byte i of the result is byte `(selector >> 4 i) & 7` of y:x.
inline unsigned __byte_perm(unsigned x, unsigned y, unsigned selector) {
  const unsigned long long bytes = (unsigned long long)(y) << 32 | x;
  unsigned result = 0;
  for (int i = 0; i < 4; ++i)
    result |= unsigned(bytes >> (8 * ((selector >> (4 * i)) & 7)) & 0xff)
              << (8 * i);
  return result;
}
inline int __popc(unsigned value) { return __builtin_popcount(value); }
inline int __ffs(int value) { return __builtin_ffs(value); }
inline int __clz(int value) {
  return value == 0 ? 32 : __builtin_clz(unsigned(value));
}

inline int min(int a, int b) { return b < a ? b : a; }
inline int max(int a, int b) { return a < b ? b : a; }
inline unsigned min(unsigned a, unsigned b) { return b < a ? b : a; }
inline unsigned max(unsigned a, unsigned b) { return a < b ? b : a; }
inline long long min(long long a, long long b) { return b < a ? b : a; }
inline long long max(long long a, long long b) { return a < b ? b : a; }
// Single operations that no compiler may join; -ffp-contract=off joins none.
inline float __fadd_rn(float a, float b) { return a + b; }
inline float __fsub_rn(float a, float b) { return a - b; }
inline float __fmul_rn(float a, float b) { return a * b; }
inline float __fdiv_rn(float a, float b) { return a / b; }
inline float __fmaf_rn(float a, float b, float c) { return fmaf(a, b, c); }
inline float __fsqrt_rn(float a) { return sqrtf(a); }
inline double __dadd_rn(double a, double b) { return a + b; }
inline double __dmul_rn(double a, double b) { return a * b; }
inline float rsqrtf(float value) { return 1.0f / sqrtf(value); }
inline float __expf(float value) { return expf(value); }
inline float __fdividef(float a, float b) { return a / b; }

#define __syncthreads() mega_sim_api->barrier(0, 0, true)
#define __syncwarp(...) mega_sim_api->syncWarp(mega::sim::fullMask(__VA_ARGS__))
#define __threadfence()                                                        \
  mega_sim_api->fence(mega::sim::Order::AcquireRelease, mega::sim::Scope::Gpu)
#define __threadfence_block()                                                  \
  mega_sim_api->fence(mega::sim::Order::AcquireRelease, mega::sim::Scope::Cta)
#define __ballot_sync(mask, value) mega_sim_api->ballot(mask, bool(value))
#define __any_sync(mask, value) (__ballot_sync(mask, value) != 0)
#define __all_sync(mask, value) (__ballot_sync(mask, !(value)) == 0)
#define __cvta_generic_to_shared(pointer)                                      \
  reinterpret_cast<unsigned long long>(pointer)
#define __shfl_sync(mask, value, ...)                                          \
  mega::sim::shuffle(mega::sim::ShuffleKind::Index, mask, value, __VA_ARGS__)
#define __shfl_up_sync(mask, value, ...)                                       \
  mega::sim::shuffle(mega::sim::ShuffleKind::Up, mask, value, __VA_ARGS__)
#define __shfl_down_sync(mask, value, ...)                                     \
  mega::sim::shuffle(mega::sim::ShuffleKind::Down, mask, value, __VA_ARGS__)
#define __shfl_xor_sync(mask, value, ...)                                      \
  mega::sim::shuffle(mega::sim::ShuffleKind::Xor, mask, value, __VA_ARGS__)

namespace mega {
namespace sim {

inline unsigned fullMask(unsigned mask = 0xffffffffu) { return mask; }

/// A shuffle of any type of one or two words.
template <typename T>
inline T shuffle(ShuffleKind kind, unsigned mask, T value, int operand,
                 int width = 32) {
  static_assert(sizeof(T) == 4 || sizeof(T) == 8,
                "a shuffle moves 4 or 8 bytes");
  unsigned words[sizeof(T) / 4];
  __builtin_memcpy(words, &value, sizeof(T));
  for (unsigned &word : words)
    word = mega_sim_api->shuffle(kind, mask, word, unsigned(operand),
                                 unsigned(width));
  __builtin_memcpy(&value, words, sizeof(T));
  return value;
}

/// A load that the sanitizer's pass does not see.
template <typename T>
__attribute__((noinline, no_sanitize_thread)) T
loadUnseen(const void *address) {
  T value;
  __builtin_memcpy(&value, address, sizeof(T));
  return value;
}

/// A load by an idiom; inlined, so that reports name the idiom's caller.
template <typename T>
MEGA_SIM_INLINE T load(const void *address, LoadKind kind) {
#ifdef MEGA_SIM_RACES
  mega_sim_api->read(address, sizeof(T), kind);
  return loadUnseen<T>(address);
#else
  (void)kind;
  T value;
  __builtin_memcpy(&value, address, sizeof(T));
  return value;
#endif
}

} // namespace sim
} // namespace mega

#endif // MEGA_SIM_PRELUDE_CUDA_H
