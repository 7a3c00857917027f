// SPDX-License-Identifier: Apache-2.0
// RUN: megalith-opt %s --verify-roundtrip | FileCheck %s

mega.weight @quant : !mega.quant<128x64xi4, group = 128, scale = bf16, zero = bf16>
mega.weight @dense : tensor<8x128xbf16>

// A quantised weight is inputs x outputs.
// CHECK-LABEL: mega.block @quantised(
mega.block @quantised(%x: tensor<128xbf16>) -> tensor<64xbf16> {
  // CHECK: mega.linear %{{.*}}, @quant : tensor<128xbf16> -> tensor<64xbf16>
  %y = mega.linear %x, @quant : tensor<128xbf16> -> tensor<64xbf16>
  mega.return %y : tensor<64xbf16>
}

// A plain one is outputs x inputs.
// CHECK-LABEL: mega.block @plain(
mega.block @plain(%x: tensor<128xbf16>) -> tensor<8xf32> {
  // CHECK: mega.linear %{{.*}}, @dense : tensor<128xbf16> -> tensor<8xf32>
  %y = mega.linear %x, @dense : tensor<128xbf16> -> tensor<8xf32>
  mega.return %y : tensor<8xf32>
}

// Partition writes the tiling.
// CHECK-LABEL: mega.block @tiled(
mega.block @tiled(%x: tensor<128xbf16>) -> tensor<64xbf16> {
  // CHECK: mega.linear %{{.*}}, @quant tiling(<begin = 0, count = 4, extent = 16>) :
  %a = mega.linear %x, @quant tiling(<begin = 0, count = 4, extent = 16>)
      : tensor<128xbf16> -> tensor<64xbf16>
  // CHECK: mega.linear %{{.*}}, @quant tiling(<begin = 4, count = 8, extent = 16, split = true>) :
  %b = mega.linear %x, @quant
      tiling(<begin = 4, count = 8, extent = 16, split = true>)
      : tensor<128xbf16> -> tensor<64xbf16>
  mega.return %a : tensor<64xbf16>
}
