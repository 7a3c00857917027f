// SPDX-License-Identifier: Apache-2.0
// RUN: megalithc %s --arch=sm_80 --emit=cuda -o %t.cu
// RUN: %if nvrtc %{ megalithc %s --arch=sm_90a --emit=cubin -o %t.cubin %}

// A conv of the block's own operand, of two taps, and a recurrence without
// decay whose heads are no power of two.
mega.weight @taps : tensor<60x2xbf16>
mega.weight @beta : tensor<3x64xbf16>
mega.weight @in : tensor<60x64xbf16>
mega.state @conv : tensor<1x60xbf16>
mega.state @S : tensor<3x20x20xf32>
mega.block @short_conv(%x: tensor<64xbf16>) -> tensor<60xbf16> {
  %i = mega.linear %x, @in : tensor<64xbf16> -> tensor<60xbf16>
  %c = mega.short_conv %i, @taps, @conv : tensor<60xbf16> -> tensor<60xf32>
  %h = mega.reshape %c : tensor<60xf32> -> tensor<3x20xf32>
  %b = mega.linear %x, @beta : tensor<64xbf16> -> tensor<3xbf16>
  %o = mega.delta_rule %h, %h, %h, %b, @S decay(none)
      : tensor<3x20xf32>, tensor<3x20xf32>, tensor<3x20xf32>, tensor<3xbf16>
      -> tensor<3x20xbf16>
  %y = mega.reshape %o : tensor<3x20xbf16> -> tensor<60xbf16>
  mega.return %y : tensor<60xbf16>
}
