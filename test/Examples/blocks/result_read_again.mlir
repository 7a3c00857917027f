// SPDX-License-Identifier: Apache-2.0
// RUN: megalithc %s --arch=sm_80 --emit=cuda -o %t.cu
// RUN: %if nvrtc %{ megalithc %s --arch=sm_90a --emit=cubin -o %t.cubin %}

// The result is also what the next layer's cache is made from.
mega.weight @w : !mega.quant<128x2112xi4, group = 128, scale = bf16, zero = bf16>
mega.weight @k : !mega.quant<2112x64xi4, group = 32, scale = bf16, zero = bf16>
mega.state @cache : tensor<?x64xbf16>
mega.block @result_read_again(%x: tensor<128xbf16>) -> tensor<2112xbf16> {
  %pos = mega.position
  %y = mega.linear %x, @w : tensor<128xbf16> -> tensor<2112xbf16>
  %c = mega.linear %y, @k : tensor<2112xbf16> -> tensor<64xbf16>
  mega.cache_append %c, %pos, @cache : tensor<64xbf16>
  mega.return %y : tensor<2112xbf16>
}
