// SPDX-License-Identifier: Apache-2.0
// RUN: megalith-opt %s --split-input-file --verify-diagnostics

mega.weight @w : !mega.quant<128x64xi4, group = 128, scale = bf16, zero = bf16>
mega.block @b(%x: tensor<128xbf16>) -> tensor<128xbf16> {
  %h = mega.reshape %x : tensor<128xbf16> -> tensor<1x128xbf16>
  // expected-error@+1 {{'mega.linear' op maps 'tensor<1x128xbf16>' to 'tensor<64xbf16>', expected rank-1 tensors}}
  %y = mega.linear %h, @w : tensor<1x128xbf16> -> tensor<64xbf16>
  mega.return %x : tensor<128xbf16>
}

// -----

mega.block @b(%x: tensor<128xbf16>) -> tensor<128xbf16> {
  // expected-error@+1 {{'mega.linear' op uses weight @"blocks.0.q-proj", which no mega.weight declares}}
  %y = mega.linear %x, @"blocks.0.q-proj" : tensor<128xbf16> -> tensor<64xbf16>
  mega.return %x : tensor<128xbf16>
}

// -----

mega.weight @w : !mega.quant<8x128x64xi4, group = 128, scale = bf16, zero = bf16>
mega.block @b(%x: tensor<128xbf16>) -> tensor<128xbf16> {
  // expected-error@+1 {{'mega.linear' op uses weight @w of type '!mega.quant<8x128x64xi4, group = 128, scale = bf16, zero = bf16>', expected a single matrix}}
  %y = mega.linear %x, @w : tensor<128xbf16> -> tensor<64xbf16>
  mega.return %x : tensor<128xbf16>
}

// -----

mega.weight @w : tensor<128xbf16>
mega.block @b(%x: tensor<128xbf16>) -> tensor<128xbf16> {
  // expected-error@+1 {{'mega.linear' op uses weight @w of type 'tensor<128xbf16>', expected a rank-2 tensor}}
  %y = mega.linear %x, @w : tensor<128xbf16> -> tensor<64xbf16>
  mega.return %x : tensor<128xbf16>
}

// -----

mega.weight @w : !mega.quant<256x64xi4, group = 128, scale = bf16, zero = bf16>
mega.block @b(%x: tensor<128xbf16>) -> tensor<128xbf16> {
  // expected-error@+1 {{'mega.linear' op weight @w has 256 inputs, expected 128}}
  %y = mega.linear %x, @w : tensor<128xbf16> -> tensor<64xbf16>
  mega.return %x : tensor<128xbf16>
}

// -----

mega.weight @w : !mega.quant<128x64xi4, group = 128, scale = bf16, zero = bf16>
mega.block @b(%x: tensor<128xbf16>) -> tensor<128xbf16> {
  // expected-error@+1 {{'mega.linear' op weight @w has 64 outputs, expected 32}}
  %y = mega.linear %x, @w : tensor<128xbf16> -> tensor<32xbf16>
  mega.return %x : tensor<128xbf16>
}

// -----

// A plain weight the wrong way round.
mega.weight @w : tensor<128x64xbf16>
mega.block @b(%x: tensor<128xbf16>) -> tensor<128xbf16> {
  // expected-error@+1 {{'mega.linear' op weight @w has 64 inputs, expected 128}}
  %y = mega.linear %x, @w : tensor<128xbf16> -> tensor<64xbf16>
  mega.return %x : tensor<128xbf16>
}

// -----

mega.weight @w : !mega.quant<128x64xi4, group = 128, scale = bf16, zero = bf16>
mega.block @b(%x: tensor<128xbf16>) -> tensor<128xbf16> {
  // expected-error@+2 {{tiling has begin -1, count 4 and extent 16, expected a non-negative begin and positive count and extent}}
  %y = mega.linear %x, @w
      tiling(<begin = -1, count = 4, extent = 16>)
      : tensor<128xbf16> -> tensor<64xbf16>
  mega.return %x : tensor<128xbf16>
}

// -----

mega.weight @w : !mega.quant<128x64xi4, group = 128, scale = bf16, zero = bf16>
mega.block @b(%x: tensor<128xbf16>) -> tensor<128xbf16> {
  // expected-error@+2 {{tiling has begin 0, count 0 and extent 16, expected a non-negative begin and positive count and extent}}
  %y = mega.linear %x, @w
      tiling(<begin = 0, count = 0, extent = 16>)
      : tensor<128xbf16> -> tensor<64xbf16>
  mega.return %x : tensor<128xbf16>
}
