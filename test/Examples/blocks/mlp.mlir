// SPDX-License-Identifier: Apache-2.0
// RUN: megalithc %s --arch=sm_80 --emit=cuda -o %t.cu
// RUN: %if nvrtc %{ megalithc %s --arch=sm_90a --emit=cubin -o %t.cubin %}

// A gated MLP without attention or experts, its norm with 1 + w from f32.
mega.weight @norm : tensor<160xf32>
mega.weight @gate : !mega.quant<160x232xi4, group = 32, scale = bf16, zero = bf16>
mega.weight @up : !mega.quant<160x232xi4, group = 32, scale = bf16, zero = bf16>
mega.weight @out : tensor<160x232xbf16>
mega.block @mlp(%x: tensor<160xbf16>) -> tensor<160xbf16> {
  %n = mega.rms_norm %x, @norm eps(1.0e-6) unit_offset
      : tensor<160xbf16> -> tensor<160xbf16>
  %g = mega.linear %n, @gate : tensor<160xbf16> -> tensor<232xbf16>
  %u = mega.linear %n, @up : tensor<160xbf16> -> tensor<232xbf16>
  // GELU by tanh.
  %h = mega.map(%a = %g, %b = %u) : (tensor<232xbf16>, tensor<232xbf16>) -> tensor<232xbf16> {
    %half = arith.constant 0.5 : f32
    %one = arith.constant 1.0 : f32
    %c0 = arith.constant 0.7978845608 : f32
    %c1 = arith.constant 0.044715 : f32
    %a2 = arith.mulf %a, %a : f32
    %a3 = arith.mulf %a2, %a : f32
    %s = arith.mulf %c1, %a3 : f32
    %t = arith.addf %a, %s : f32
    %v = arith.mulf %c0, %t : f32
    %w = math.tanh %v : f32
    %z = arith.addf %one, %w : f32
    %ha = arith.mulf %half, %a : f32
    %gelu = arith.mulf %ha, %z : f32
    %p = arith.mulf %gelu, %b : f32
    mega.yield %p
  }
  %d = mega.linear %h, @out : tensor<232xbf16> -> tensor<160xbf16>
  %y = mega.map(%a = %x, %b = %d) : (tensor<160xbf16>, tensor<160xbf16>) -> tensor<160xbf16> {
    %s = arith.addf %a, %b : f32
    mega.yield %s
  }
  mega.return %y : tensor<160xbf16>
}
