// SPDX-License-Identifier: Apache-2.0
// RUN: megalith-opt %s --split-input-file --verify-diagnostics

mega.block @b(%x: tensor<64xbf16>) -> tensor<64xbf16> {
  %pos = mega.position
  // expected-error@+1 {{'mega.rope' op maps 'tensor<64xbf16>' to 'tensor<32xbf16>', expected one shape of rank 1 or more}}
  %y = mega.rope %x, %pos half range(0, 64) theta(1.0)
      : tensor<64xbf16> -> tensor<32xbf16>
  mega.return %x : tensor<64xbf16>
}

// -----

mega.block @b(%x: tensor<64xbf16>) -> tensor<64xbf16> {
  %pos = mega.position
  // expected-error@+1 {{'mega.rope' op rotates 7 elements, expected a positive even number}}
  %y = mega.rope %x, %pos half range(0, 7) theta(1.0)
      : tensor<64xbf16> -> tensor<64xbf16>
  mega.return %x : tensor<64xbf16>
}

// -----

mega.block @b(%x: tensor<64xbf16>) -> tensor<64xbf16> {
  %pos = mega.position
  // expected-error@+1 {{'mega.rope' op rotates 0 elements, expected a positive even number}}
  %y = mega.rope %x, %pos half range(0, 0) theta(1.0)
      : tensor<64xbf16> -> tensor<64xbf16>
  mega.return %x : tensor<64xbf16>
}

// -----

mega.block @b(%x: tensor<64xbf16>) -> tensor<64xbf16> {
  %pos = mega.position
  // expected-error@+1 {{'mega.rope' op rotates -2 elements, expected a positive even number}}
  %y = mega.rope %x, %pos half range(0, -2) theta(1.0)
      : tensor<64xbf16> -> tensor<64xbf16>
  mega.return %x : tensor<64xbf16>
}

// -----

mega.block @b(%x: tensor<64xbf16>) -> tensor<64xbf16> {
  %pos = mega.position
  // expected-error@+1 {{'mega.rope' op rotates 64 elements from 32 of the last dimension, expected a range inside [0, 64)}}
  %y = mega.rope %x, %pos half range(32, 64) theta(1.0)
      : tensor<64xbf16> -> tensor<64xbf16>
  mega.return %x : tensor<64xbf16>
}

// -----

mega.block @b(%x: tensor<64xbf16>) -> tensor<64xbf16> {
  %pos = mega.position
  // expected-error@+1 {{'mega.rope' op rotates 8 elements from -2 of the last dimension, expected a range inside [0, 64)}}
  %y = mega.rope %x, %pos half range(-2, 8) theta(1.0)
      : tensor<64xbf16> -> tensor<64xbf16>
  mega.return %x : tensor<64xbf16>
}

// -----

mega.block @b(%x: tensor<64xbf16>) -> tensor<64xbf16> {
  %pos = mega.position
  // The end overflows; it must not wrap around into the range.
  // expected-error@+1 {{'mega.rope' op rotates 8 elements from 9223372036854775807 of the last dimension, expected a range inside [0, 64)}}
  %y = mega.rope %x, %pos half range(9223372036854775807, 8) theta(1.0)
      : tensor<64xbf16> -> tensor<64xbf16>
  mega.return %x : tensor<64xbf16>
}

// -----

mega.block @b(%x: tensor<64xbf16>) -> tensor<64xbf16> {
  %pos = mega.position
  // expected-error@+1 {{'mega.rope' op has theta 0.000000e+00, expected a positive one}}
  %y = mega.rope %x, %pos half range(0, 64) theta(0.0)
      : tensor<64xbf16> -> tensor<64xbf16>
  mega.return %x : tensor<64xbf16>
}

// -----

mega.block @b(%x: tensor<64xbf16>) -> tensor<64xbf16> {
  %pos = mega.position
  // expected-error@+1 {{'mega.rope' op has theta -1.000000e+00, expected a positive one}}
  %y = mega.rope %x, %pos half range(0, 64) theta(-1.0)
      : tensor<64xbf16> -> tensor<64xbf16>
  mega.return %x : tensor<64xbf16>
}
