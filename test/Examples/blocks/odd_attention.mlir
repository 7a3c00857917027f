// SPDX-License-Identifier: Apache-2.0
// RUN: megalithc %s --arch=sm_80 --emit=cuda -o %t.cu
// RUN: %if nvrtc %{ megalithc %s --arch=sm_90a --emit=cubin -o %t.cubin %}

// Three heads, a latent row that no unit covers evenly, halves in the query.
mega.weight @q : !mega.quant<64x144xi4, group = 64, scale = bf16, zero = bf16>
mega.weight @kv_a : !mega.quant<64x176xi4, group = 64, scale = bf16, zero = bf16>
mega.weight @kv_b : !mega.quant<160x240xi4, group = 32, scale = bf16, zero = bf16>
mega.state @latent : tensor<?x160xbf16>
mega.state @rope : tensor<?x16xbf16>
mega.block @odd_attention(%x: tensor<64xbf16>) -> tensor<144xbf16> {
  %pos = mega.position
  %q = mega.linear %x, @q : tensor<64xbf16> -> tensor<144xbf16>
  %h = mega.reshape %q : tensor<144xbf16> -> tensor<3x48xbf16>
  %r = mega.rope %h, %pos half range(32, 16) theta(10000.0)
      : tensor<3x48xbf16> -> tensor<3x48xbf16>
  %kv = mega.linear %x, @kv_a : tensor<64xbf16> -> tensor<176xbf16>
  %c = mega.slice %kv from 0 : tensor<176xbf16> -> tensor<160xbf16>
  %k = mega.slice %kv from 160 : tensor<176xbf16> -> tensor<16xbf16>
  %kr = mega.rope %k, %pos half range(0, 16) theta(10000.0)
      : tensor<16xbf16> -> tensor<16xbf16>
  mega.cache_append %c, %pos, @latent : tensor<160xbf16>
  mega.cache_append %kr, %pos, @rope : tensor<16xbf16>
  %o = mega.latent_attention %r, %pos, @latent, @rope, @kv_b scale(0.144) absorb
      : tensor<3x48xbf16> -> tensor<3x48xbf16>
  %y = mega.reshape %o : tensor<3x48xbf16> -> tensor<144xbf16>
  mega.return %y : tensor<144xbf16>
}
