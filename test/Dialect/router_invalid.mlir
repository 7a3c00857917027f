// SPDX-License-Identifier: Apache-2.0
// RUN: megalith-opt %s --split-input-file --verify-diagnostics

mega.block @b(%x: tensor<64xbf16>) -> tensor<64xbf16> {
  %h = mega.reshape %x : tensor<64xbf16> -> tensor<1x64xbf16>
  // expected-error@+1 {{'mega.router' op has logits 'tensor<1x64xbf16>', expected a rank-1 tensor}}
  %ids, %w = mega.router %h softmax scale(1.0)
      : tensor<1x64xbf16> -> tensor<8xi32>, tensor<8xf32>
  mega.return %x : tensor<64xbf16>
}

// -----

mega.block @b(%x: tensor<64xbf16>) -> tensor<64xbf16> {
  // expected-error@+1 {{'mega.router' op has ids 'tensor<8xi32>' and weights 'tensor<4xf32>', expected one size}}
  %ids, %w = mega.router %x softmax scale(1.0)
      : tensor<64xbf16> -> tensor<8xi32>, tensor<4xf32>
  mega.return %x : tensor<64xbf16>
}

// -----

mega.block @b(%x: tensor<64xbf16>) -> tensor<64xbf16> {
  // expected-error@+1 {{'mega.router' op has ids 'tensor<?xi32>' and weights 'tensor<8xf32>', expected one size}}
  %ids, %w = mega.router %x softmax scale(1.0)
      : tensor<64xbf16> -> tensor<?xi32>, tensor<8xf32>
  mega.return %x : tensor<64xbf16>
}

// -----

// Top-k above the expert count.
mega.block @b(%x: tensor<64xbf16>) -> tensor<64xbf16> {
  // expected-error@+1 {{'mega.router' op chooses 65 experts, expected at least 1 and at most the 64 there are}}
  %ids, %w = mega.router %x softmax scale(1.0)
      : tensor<64xbf16> -> tensor<65xi32>, tensor<65xf32>
  mega.return %x : tensor<64xbf16>
}

// -----

mega.block @b(%x: tensor<64xbf16>) -> tensor<64xbf16> {
  // expected-error@+1 {{'mega.router' op chooses 0 experts, expected at least 1 and at most the 64 there are}}
  %ids, %w = mega.router %x softmax scale(1.0)
      : tensor<64xbf16> -> tensor<0xi32>, tensor<0xf32>
  mega.return %x : tensor<64xbf16>
}

// -----

mega.block @b(%x: tensor<64xbf16>) -> tensor<64xbf16> {
  // expected-error@+1 {{'mega.router' op uses weight @bias, which no mega.weight declares}}
  %ids, %w = mega.router %x softmax bias(@bias) scale(1.0)
      : tensor<64xbf16> -> tensor<8xi32>, tensor<8xf32>
  mega.return %x : tensor<64xbf16>
}

// -----

mega.weight @bias : tensor<1x64xf32>
mega.block @b(%x: tensor<64xbf16>) -> tensor<64xbf16> {
  // expected-error@+1 {{'mega.router' op uses weight @bias of type 'tensor<1x64xf32>', expected a rank-1 tensor}}
  %ids, %w = mega.router %x softmax bias(@bias) scale(1.0)
      : tensor<64xbf16> -> tensor<8xi32>, tensor<8xf32>
  mega.return %x : tensor<64xbf16>
}

// -----

mega.weight @bias : tensor<32xf32>
mega.block @b(%x: tensor<64xbf16>) -> tensor<64xbf16> {
  // expected-error@+1 {{'mega.router' op bias @bias has 32 elements, expected 64}}
  %ids, %w = mega.router %x softmax bias(@bias) scale(1.0)
      : tensor<64xbf16> -> tensor<8xi32>, tensor<8xf32>
  mega.return %x : tensor<64xbf16>
}
