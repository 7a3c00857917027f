// SPDX-License-Identifier: Apache-2.0
// RUN: megalith-opt %s --split-input-file --verify-diagnostics

mega.weight @w : tensor<64xbf16>
mega.block @b(%x: tensor<64xbf16>) -> tensor<64xbf16> {
  // expected-error@+1 {{'mega.rms_norm' op maps 'tensor<64xbf16>' to 'tensor<32xbf16>', expected one shape of rank 1 or more}}
  %y = mega.rms_norm %x, @w eps(1.0e-6) : tensor<64xbf16> -> tensor<32xbf16>
  mega.return %x : tensor<64xbf16>
}

// -----

mega.weight @w : tensor<1xbf16>
mega.block @rank_0(%x: tensor<1xbf16>) -> tensor<1xbf16> {
  %s = mega.reshape %x : tensor<1xbf16> -> tensor<bf16>
  // expected-error@+1 {{'mega.rms_norm' op maps 'tensor<bf16>' to 'tensor<bf16>', expected one shape of rank 1 or more}}
  %y = mega.rms_norm %s, @w eps(1.0e-6) : tensor<bf16> -> tensor<bf16>
  mega.return %x : tensor<1xbf16>
}

// -----

mega.weight @w : tensor<64xbf16>
mega.block @b(%x: tensor<64xbf16>) -> tensor<64xbf16> {
  // expected-error@+1 {{'mega.rms_norm' op has eps -1.000000e+00, expected a non-negative one}}
  %y = mega.rms_norm %x, @w eps(-1.0) : tensor<64xbf16> -> tensor<64xbf16>
  mega.return %x : tensor<64xbf16>
}

// -----

mega.block @b(%x: tensor<64xbf16>) -> tensor<64xbf16> {
  // expected-error@+1 {{'mega.rms_norm' op uses weight @w, which no mega.weight declares}}
  %y = mega.rms_norm %x, @w eps(1.0e-6) : tensor<64xbf16> -> tensor<64xbf16>
  mega.return %x : tensor<64xbf16>
}

// -----

// A state of that name is not a weight.
mega.state @w : tensor<64xbf16>
mega.block @b(%x: tensor<64xbf16>) -> tensor<64xbf16> {
  // expected-error@+1 {{'mega.rms_norm' op uses weight @w, which no mega.weight declares}}
  %y = mega.rms_norm %x, @w eps(1.0e-6) : tensor<64xbf16> -> tensor<64xbf16>
  mega.return %x : tensor<64xbf16>
}

// -----

mega.weight @w : tensor<1x64xbf16>
mega.block @b(%x: tensor<64xbf16>) -> tensor<64xbf16> {
  // expected-error@+1 {{'mega.rms_norm' op uses weight @w of type 'tensor<1x64xbf16>', expected a rank-1 tensor}}
  %y = mega.rms_norm %x, @w eps(1.0e-6) : tensor<64xbf16> -> tensor<64xbf16>
  mega.return %x : tensor<64xbf16>
}

// -----

mega.weight @w : !mega.quant<128x64xi4, group = 128, scale = bf16, zero = bf16>
mega.block @b(%x: tensor<64xbf16>) -> tensor<64xbf16> {
  // expected-error@+1 {{'mega.rms_norm' op uses weight @w of type '!mega.quant<128x64xi4, group = 128, scale = bf16, zero = bf16>', expected a rank-1 tensor}}
  %y = mega.rms_norm %x, @w eps(1.0e-6) : tensor<64xbf16> -> tensor<64xbf16>
  mega.return %x : tensor<64xbf16>
}

// -----

mega.weight @w : tensor<32xbf16>
mega.block @b(%x: tensor<64xbf16>) -> tensor<64xbf16> {
  // expected-error@+1 {{'mega.rms_norm' op weight @w has 32 elements, expected 64}}
  %y = mega.rms_norm %x, @w eps(1.0e-6) : tensor<64xbf16> -> tensor<64xbf16>
  mega.return %x : tensor<64xbf16>
}
