// SPDX-License-Identifier: Apache-2.0
// A whole block through every pass, and what the schedule of the example costs.

// RUN: megalith-opt %s -mega-pipeline | FileCheck %s
// RUN: megalith-opt %s -mega-pipeline | megalith-opt -mega-verify-schedule -mega-verify-kernel

// CHECK: mega.kernel @mlp(
// CHECK-NOT: mega.block
// CHECK: mega.phase 0 {
// CHECK-NEXT: mega.stage "linear gate +1" tiles(8) {
// CHECK: mega.grid_barrier covers ["linear gate +1 -> linear down: read after write of gate.linear", "linear gate +1 -> linear down: read after write of up.linear"]
// CHECK-NEXT: mega.phase 1 {
// CHECK-NEXT: mega.stage "linear down" tiles(2) {
// CHECK: mega.grid_barrier covers ["linear down -> elementwise: read after write of down.linear"]
// CHECK-NEXT: mega.phase 2 {
// CHECK-NEXT: mega.stage "elementwise" tiles(32) {
// CHECK-NOT: mega.phase
module attributes {mega.target = #mega.target<arch = "sm_90a", ctas = 4, threads = 256, shared_bytes = 131072>} {
mega.weight @gate : !mega.quant<32x64xi4, group = 32, scale = bf16, zero = bf16>
mega.weight @up : !mega.quant<32x64xi4, group = 32, scale = bf16, zero = bf16>
mega.weight @down : !mega.quant<64x32xi4, group = 32, scale = bf16, zero = bf16>
mega.weight @norm : tensor<32xbf16>
mega.block @mlp(%x: tensor<32xbf16>) -> tensor<32xbf16> {
  %n = mega.rms_norm %x, @norm eps(1.0e-6) : tensor<32xbf16> -> tensor<32xbf16>
  %g = mega.linear %n, @gate : tensor<32xbf16> -> tensor<64xbf16>
  %u = mega.linear %n, @up : tensor<32xbf16> -> tensor<64xbf16>
  %h = mega.map(%a = %g, %b = %u) : (tensor<64xbf16>, tensor<64xbf16>) -> tensor<64xbf16> {
    %p = arith.mulf %a, %b : f32
    mega.yield %p
  }
  %d = mega.linear %h, @down : tensor<64xbf16> -> tensor<32xbf16>
  %y = mega.map(%a = %x, %b = %d) : (tensor<32xbf16>, tensor<32xbf16>) -> tensor<32xbf16> {
    %s = arith.addf %a, %b : f32
    mega.yield %s
  }
  mega.return %y : tensor<32xbf16>
}
}
