// SPDX-License-Identifier: Apache-2.0
// The choices of form-stages: what shares a stage, what is split, what is
// published. Each changes one thing.
// RUN: megalith-opt %s -mega-form-stages | FileCheck %s --check-prefixes=ALL,DEFAULT
// RUN: megalith-opt %s '-mega-form-stages=join-linears=false' \
// RUN:   | FileCheck %s --check-prefixes=ALL,APART
// RUN: megalith-opt %s '-mega-form-stages=publish-reused=false' \
// RUN:   | FileCheck %s --check-prefixes=ALL,AGAIN
// RUN: megalith-opt %s '-mega-form-stages=split-below=0' \
// RUN:   | FileCheck %s --check-prefixes=ALL,WHOLE

module attributes {mega.target = #mega.target<arch = "sm_90a", ctas = 8, threads = 256, shared_bytes = 131072>} {

mega.weight @norm : tensor<256xbf16>
mega.weight @up : !mega.quant<256x256xi4, group = 128, scale = bf16, zero = bf16>
mega.weight @gate : !mega.quant<256x256xi4, group = 128, scale = bf16, zero = bf16>
mega.weight @down : !mega.quant<256x64xi4, group = 128, scale = bf16, zero = bf16>
mega.weight @out : !mega.quant<64x256xi4, group = 32, scale = bf16, zero = bf16>

// ALL-LABEL: mega.program @choices(
mega.block @choices(%x: tensor<256xbf16>) -> tensor<256xbf16> {
  // The norm has a second reader in a later stage.
  %n = mega.rms_norm %x, @norm eps(1.0e-6) : tensor<256xbf16> -> tensor<256xbf16>
  // DEFAULT: mega.stage "linear up +1"
  // WHOLE: mega.stage "linear up +1"
  // AGAIN: mega.stage "linear up +1"
  // APART: mega.stage "linear up" {
  // APART: mega.stage "linear gate" {
  %u = mega.linear %n, @up : tensor<256xbf16> -> tensor<256xbf16>
  %g = mega.linear %n, @gate : tensor<256xbf16> -> tensor<256xbf16>
  %h = mega.map (%a = %u, %b = %g) : (tensor<256xbf16>, tensor<256xbf16>) -> tensor<256xbf16> {
    %p = arith.mulf %a, %b : f32
    mega.yield %p
  }
  // Four tiles keep half of eight CTAs busy.
  // DEFAULT: mega.stage "linear down"
  // DEFAULT: mega.linear {{.*}}@down tiling({{.*}}split = true
  // WHOLE: mega.stage "linear down"
  // WHOLE-NOT: split = true
  %d = mega.linear %h, @down : tensor<256xbf16> -> tensor<64xbf16>
  %o = mega.linear %d, @out : tensor<64xbf16> -> tensor<256xbf16>
  // The result adds the norm: published by the first stage, or computed again.
  // DEFAULT: mega.stage "elementwise"
  // DEFAULT-NOT: mega.rms_norm
  // AGAIN: mega.stage "elementwise"
  // AGAIN: mega.rms_norm
  %r = mega.map (%a = %o, %b = %n) : (tensor<256xbf16>, tensor<256xbf16>) -> tensor<256xbf16> {
    %s = arith.addf %a, %b : f32
    mega.yield %s
  }
  mega.return %r : tensor<256xbf16>
}
}
