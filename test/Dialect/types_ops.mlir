// SPDX-License-Identifier: Apache-2.0
// RUN: megalith-opt %s --verify-roundtrip | FileCheck %s

// A type is tested where a declaration or an argument holds it.

// CHECK: mega.weight @matrix : !mega.quant<256x64xi4, group = 128, scale = bf16, zero = bf16>
mega.weight @matrix : !mega.quant<256x64xi4, group = 128, scale = bf16, zero = bf16>

// CHECK: mega.weight @stack : !mega.quant<8x256x64xi4, group = 128, scale = bf16, zero = bf16>
mega.weight @stack : !mega.quant<8x256x64xi4, group = 128, scale = bf16, zero = bf16>

// CHECK: mega.weight @group_below_unit : !mega.quant<64x16xi4, group = 32, scale = bf16, zero = bf16>
mega.weight @group_below_unit : !mega.quant<64x16xi4, group = 32, scale = bf16, zero = bf16>

// CHECK: mega.weight @group_above_unit : !mega.quant<512x16xi4, group = 256, scale = bf16, zero = bf16>
mega.weight @group_above_unit : !mega.quant<512x16xi4, group = 256, scale = bf16, zero = bf16>

// CHECK: mega.program @buffers(%arg0, %arg1) : !mega.buffer<64xbf16>, !mega.buffer<2x4xf32>
mega.program @buffers(%in, %out)
    : !mega.buffer<64xbf16>, !mega.buffer<2x4xf32> {
  // CHECK: !mega.buffer<8xi32>
  %ids = mega.alloc "ids" : !mega.buffer<8xi32>
}
