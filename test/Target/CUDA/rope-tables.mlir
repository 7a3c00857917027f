// SPDX-License-Identifier: Apache-2.0
// RUN: megalithc %s --emit=cuda -o - | FileCheck %s

// A table for each theta and size, once; `none` needs none. The frequencies in f32
// of 100 over 8 elements are 1, 10^-0.5, 0.1 and 10^-1.5.

// CHECK: /// theta^(-2i/8)
// CHECK-NEXT: __device__ const float kRope42C80000Of8[4] = {
// CHECK-NEXT: 1.0f, 0.316227764f, 0.100000001f, 0.0316227786f};
// CHECK: /// theta^(-2i/16)
// CHECK-NEXT: __device__ const float kRope42C80000Of16[8] = {
// CHECK-NOT: __device__ const float kRope
mega.state @cache : tensor<?x16xbf16>
mega.block @rotations(%x: tensor<16xbf16>) -> tensor<16xbf16> {
  %pos = mega.position
  %a = mega.rope %x, %pos interleaved range(0, 8) theta(100.0) : tensor<16xbf16> -> tensor<16xbf16>
  %b = mega.rope %a, %pos half range(8, 8) theta(100.0) : tensor<16xbf16> -> tensor<16xbf16>
  %c = mega.rope %b, %pos none range(0, 16) theta(7.0) : tensor<16xbf16> -> tensor<16xbf16>
  mega.cache_append %c, %pos, @cache : tensor<16xbf16>
  %y = mega.rope %x, %pos interleaved range(0, 16) theta(100.0) : tensor<16xbf16> -> tensor<16xbf16>
  mega.return %y : tensor<16xbf16>
}
