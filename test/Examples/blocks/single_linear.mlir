// SPDX-License-Identifier: Apache-2.0
// RUN: megalithc %s --arch=sm_80 --emit=cuda -o %t.cu
// RUN: %if nvrtc %{ megalithc %s --arch=sm_90a --emit=cubin -o %t.cubin %}

// A block of one op.
mega.weight @w : !mega.quant<128x64xi4, group = 128, scale = bf16, zero = bf16>
mega.block @single_linear(%x: tensor<128xbf16>) -> tensor<64xbf16> {
  %y = mega.linear %x, @w : tensor<128xbf16> -> tensor<64xbf16>
  mega.return %y : tensor<64xbf16>
}
