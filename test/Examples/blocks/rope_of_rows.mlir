// SPDX-License-Identifier: Apache-2.0
// RUN: megalithc %s --arch=sm_80 --emit=cuda -o %t.cu
// RUN: %if nvrtc %{ megalithc %s --arch=sm_90a --emit=cubin -o %t.cubin %}

// Pairs of a plain weight's outputs, and of a recurrence's.
mega.weight @w : tensor<64x128xbf16>
mega.weight @beta : tensor<2x128xbf16>
mega.state @S : tensor<2x32x32xf32>
mega.block @rope_of_rows(%x: tensor<128xbf16>) -> tensor<64xbf16> {
  %pos = mega.position
  %q = mega.linear %x, @w : tensor<128xbf16> -> tensor<64xbf16>
  %r = mega.rope %q, %pos interleaved range(0, 64) theta(10000.0)
      : tensor<64xbf16> -> tensor<64xbf16>
  %h = mega.reshape %r : tensor<64xbf16> -> tensor<2x32xbf16>
  %b = mega.linear %x, @beta : tensor<128xbf16> -> tensor<2xbf16>
  %o = mega.delta_rule %h, %h, %h, %b, @S decay(head) %b
      : tensor<2x32xbf16>, tensor<2x32xbf16>, tensor<2x32xbf16>, tensor<2xbf16>,
        tensor<2xbf16> -> tensor<2x32xbf16>
  %s = mega.rope %o, %pos interleaved range(0, 32) theta(10000.0)
      : tensor<2x32xbf16> -> tensor<2x32xbf16>
  %y = mega.reshape %s : tensor<2x32xbf16> -> tensor<64xbf16>
  mega.return %y : tensor<64xbf16>
}
