// SPDX-License-Identifier: Apache-2.0
// RUN: megalith-opt %s --split-input-file --verify-diagnostics

mega.weight @w : tensor<64x4xbf16>
mega.state @s : tensor<3x64xbf16>
mega.block @b(%x: tensor<64xbf16>) -> tensor<64xbf16> {
  // expected-error@+1 {{'mega.short_conv' op maps 'tensor<64xbf16>' to 'tensor<32xf32>', expected rank-1 tensors of one size}}
  %y = mega.short_conv %x, @w, @s : tensor<64xbf16> -> tensor<32xf32>
  mega.return %x : tensor<64xbf16>
}

// -----

mega.state @s : tensor<3x64xbf16>
mega.block @b(%x: tensor<64xbf16>) -> tensor<64xbf16> {
  // expected-error@+1 {{'mega.short_conv' op uses weight @w, which no mega.weight declares}}
  %y = mega.short_conv %x, @w, @s : tensor<64xbf16> -> tensor<64xf32>
  mega.return %x : tensor<64xbf16>
}

// -----

mega.weight @w : tensor<64x4xbf16>
mega.block @b(%x: tensor<64xbf16>) -> tensor<64xbf16> {
  // expected-error@+1 {{'mega.short_conv' op uses state @s, which no mega.state declares}}
  %y = mega.short_conv %x, @w, @s : tensor<64xbf16> -> tensor<64xf32>
  mega.return %x : tensor<64xbf16>
}

// -----

mega.weight @w : tensor<3x64x4xbf16>
mega.state @s : tensor<3x64xbf16>
mega.block @b(%x: tensor<64xbf16>) -> tensor<64xbf16> {
  // expected-error@+1 {{'mega.short_conv' op uses weight @w of type 'tensor<3x64x4xbf16>', expected a rank-2 tensor}}
  %y = mega.short_conv %x, @w, @s : tensor<64xbf16> -> tensor<64xf32>
  mega.return %x : tensor<64xbf16>
}

// -----

mega.weight @w : tensor<64x4xbf16>
mega.state @s : tensor<3x64xbf16>
mega.block @b(%x: tensor<64xbf16>) -> tensor<64xbf16> {
  // expected-error@+1 {{'mega.short_conv' op uses weight @w of type 'tensor<64x4xbf16>', expected a rank-3 tensor}}
  %y = mega.short_conv %x, @w[0], @s : tensor<64xbf16> -> tensor<64xf32>
  mega.return %x : tensor<64xbf16>
}

// -----

mega.weight @w : tensor<3x64x4xbf16>
mega.state @s : tensor<3x64xbf16>
mega.block @b(%x: tensor<64xbf16>) -> tensor<64xbf16> {
  // expected-error@+1 {{'mega.short_conv' op takes slice 3 of weight @w, expected one in [0, 3)}}
  %y = mega.short_conv %x, @w[3], @s : tensor<64xbf16> -> tensor<64xf32>
  mega.return %x : tensor<64xbf16>
}

// -----

mega.weight @w : tensor<3x64x4xbf16>
mega.state @s : tensor<3x64xbf16>
mega.block @b(%x: tensor<64xbf16>) -> tensor<64xbf16> {
  // expected-error@+1 {{'mega.short_conv' op takes slice -1 of weight @w, expected one in [0, 3)}}
  %y = mega.short_conv %x, @w[-1], @s : tensor<64xbf16> -> tensor<64xf32>
  mega.return %x : tensor<64xbf16>
}

// -----

mega.weight @w : tensor<32x4xbf16>
mega.state @s : tensor<3x64xbf16>
mega.block @b(%x: tensor<64xbf16>) -> tensor<64xbf16> {
  // expected-error@+1 {{'mega.short_conv' op weight @w has 32 channels, expected 64}}
  %y = mega.short_conv %x, @w, @s : tensor<64xbf16> -> tensor<64xf32>
  mega.return %x : tensor<64xbf16>
}

// -----

// Four taps look back three tokens.
mega.weight @w : tensor<64x4xbf16>
mega.state @s : tensor<4x64xbf16>
mega.block @b(%x: tensor<64xbf16>) -> tensor<64xbf16> {
  // expected-error@+1 {{'mega.short_conv' op uses state @s of type 'tensor<4x64xbf16>', expected 'tensor<3x64xbf16>'}}
  %y = mega.short_conv %x, @w, @s : tensor<64xbf16> -> tensor<64xf32>
  mega.return %x : tensor<64xbf16>
}

// -----

mega.weight @w : tensor<64x4xbf16>
mega.state @s : tensor<3x64xf32>
mega.block @b(%x: tensor<64xbf16>) -> tensor<64xbf16> {
  // expected-error@+1 {{'mega.short_conv' op uses state @s of type 'tensor<3x64xf32>', expected 'tensor<3x64xbf16>'}}
  %y = mega.short_conv %x, @w, @s : tensor<64xbf16> -> tensor<64xf32>
  mega.return %x : tensor<64xbf16>
}
