// SPDX-License-Identifier: Apache-2.0
/// \file
/// Division by a number that only the run knows, such as the number of CTAs.

namespace mega {

/// n / d, rounded down, for d > 0 and quotients below 2^20. A third of the time
/// of the general division: the product with an approximate reciprocal is off
/// by at most one then, which the remainder shows.
__device__ __forceinline__ u32 divide(u32 n, u32 d) {
  float reciprocal;
  asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(reciprocal) : "f"(float(d)));
  const u32 quotient = u32(float(n) * reciprocal);
  const int rest = int(n - quotient * d);
  return rest < 0 ? quotient - 1 : rest >= int(d) ? quotient + 1 : quotient;
}

} // namespace mega
