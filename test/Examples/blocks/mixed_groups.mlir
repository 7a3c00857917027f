// SPDX-License-Identifier: Apache-2.0
// RUN: megalithc %s --arch=sm_80 --emit=cuda -o %t.cu
// RUN: %if nvrtc %{ megalithc %s --arch=sm_90a --emit=cubin -o %t.cubin %}

// Weights of two groups and a plain one read one operand.
mega.weight @a : !mega.quant<128x64xi4, group = 128, scale = bf16, zero = bf16>
mega.weight @b : !mega.quant<128x64xi4, group = 32, scale = bf16, zero = bf16>
mega.weight @c : tensor<64x128xbf16>
mega.block @mixed_groups(%x: tensor<128xbf16>) -> tensor<64xbf16> {
  %p = mega.linear %x, @a : tensor<128xbf16> -> tensor<64xbf16>
  %q = mega.linear %x, @b : tensor<128xbf16> -> tensor<64xbf16>
  %r = mega.linear %x, @c : tensor<128xbf16> -> tensor<64xbf16>
  %y = mega.map(%s = %p, %t = %q, %u = %r)
      : (tensor<64xbf16>, tensor<64xbf16>, tensor<64xbf16>) -> tensor<64xbf16> {
    %v = arith.addf %s, %t : f32
    %z = arith.addf %v, %u : f32
    mega.yield %z
  }
  mega.return %y : tensor<64xbf16>
}
