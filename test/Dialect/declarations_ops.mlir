// SPDX-License-Identifier: Apache-2.0
// RUN: megalith-opt %s --verify-roundtrip | FileCheck %s

// A checkpoint's names are symbols as they stand.
// CHECK: mega.weight @blocks.0.norm : tensor<64xbf16>
mega.weight @"blocks.0.norm" : tensor<64xbf16>

// CHECK: mega.weight @dense_f32 : tensor<3x64x4xf32>
mega.weight @dense_f32 : tensor<3x64x4xf32>

// CHECK: mega.weight @quant : !mega.quant<128x64xi4, group = 128, scale = bf16, zero = bf16>
mega.weight @quant : !mega.quant<128x64xi4, group = 128, scale = bf16, zero = bf16>

// CHECK: mega.state @"0.S" : tensor<2x8x8xf32>
mega.state @"0.S" : tensor<2x8x8xf32>

// A leading dynamic dimension makes a cache.
// CHECK: mega.state @cache : tensor<?x64xbf16>
mega.state @cache : tensor<?x64xbf16>

// CHECK-LABEL: mega.block @pass_through(
// CHECK-SAME: %[[X:.*]]: tensor<64xbf16>) -> tensor<64xbf16>
mega.block @pass_through(%x: tensor<64xbf16>) -> tensor<64xbf16> {
  // CHECK: mega.return %[[X]] : tensor<64xbf16>
  mega.return %x : tensor<64xbf16>
}

// CHECK-LABEL: mega.block @position(
mega.block @position(%x: tensor<64xbf16>) -> tensor<64xbf16> {
  // CHECK: %{{.*}} = mega.position
  %pos = mega.position
  mega.return %x : tensor<64xbf16>
}
