// SPDX-License-Identifier: Apache-2.0
/// \file
/// Tensor-core instructions, one a struct, named as the instruction.

namespace mega {

/// D[16x8] += A[16x16] B[16x8], bf16 in, f32 out (PTX ISA, "Matrix Fragments
/// for mma.m16n8k16 with floating point type"). With g = lane / 4, t = lane %
/// 4:
///   a[0] (g, 2t..2t+1)  a[1] (g+8, 2t..)  a[2] (g, 2t+8..)  a[3] (g+8, 2t+8..)
///   b[0] (2t..2t+1, g)  b[1] (2t+8..2t+9, g)
///   d[0] (g, 2t)  d[1] (g, 2t+1)  d[2] (g+8, 2t)  d[3] (g+8, 2t+1)
struct MmaM16N8K16Bf16 {
  static __device__ __forceinline__ void run(float (&d)[4], u32 a0, u32 a1,
                                             u32 a2, u32 a3, u32 b0, u32 b1) {
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 "
                 "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
                 "{%0, %1, %2, %3};"
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
                 : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1));
  }
};

/// Four 8x8 matrices of 16-bit elements from shared memory: lane i gives the
/// address of row i % 8 (16 bytes) of matrix i / 8. Lane l receives elements
/// (l/4, 2(l%4)) and (l/4, 2(l%4)+1) of each, as an operand whose k runs along
/// rows has them (PTX ISA, ldmatrix).
struct LdmatrixX4 {
  static __device__ __forceinline__ void run(u32 (&d)[4], const void *row) {
    const u32 address = u32(__cvta_generic_to_shared(row));
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, "
                 "[%4];"
                 : "=r"(d[0]), "=r"(d[1]), "=r"(d[2]), "=r"(d[3])
                 : "r"(address)
                 : "memory");
  }
};

/// The same, transposed: lane l receives elements (2(l%4), l/4) and
/// (2(l%4)+1, l/4), for an operand whose k runs down columns.
struct LdmatrixX4Trans {
  static __device__ __forceinline__ void run(u32 (&d)[4], const void *row) {
    const u32 address = u32(__cvta_generic_to_shared(row));
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 "
                 "{%0, %1, %2, %3}, [%4];"
                 : "=r"(d[0]), "=r"(d[1]), "=r"(d[2]), "=r"(d[3])
                 : "r"(address)
                 : "memory");
  }
};

} // namespace mega
