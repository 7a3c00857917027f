// SPDX-License-Identifier: Apache-2.0
// RUN: megalithc %s --arch=sm_80 --emit=cuda -o %t.cu
// RUN: %if nvrtc %{ megalithc %s --arch=sm_90a --emit=cubin -o %t.cubin %}

// Halves on part of each head, cached; the rotated value is used again.
mega.weight @w : !mega.quant<128x192xi4, group = 128, scale = bf16, zero = bf16>
mega.state @cache : tensor<?x3x64xbf16>
mega.block @rope_half(%x: tensor<128xbf16>) -> tensor<192xbf16> {
  %pos = mega.position
  %q = mega.linear %x, @w : tensor<128xbf16> -> tensor<192xbf16>
  %h = mega.reshape %q : tensor<192xbf16> -> tensor<3x64xbf16>
  %r = mega.rope %h, %pos half range(16, 32) theta(500000.0)
      : tensor<3x64xbf16> -> tensor<3x64xbf16>
  mega.cache_append %r, %pos, @cache : tensor<3x64xbf16>
  %y = mega.reshape %r : tensor<3x64xbf16> -> tensor<192xbf16>
  mega.return %y : tensor<192xbf16>
}
