// SPDX-License-Identifier: Apache-2.0
// RUN: megalith-opt %s --split-input-file --verify-diagnostics

mega.block @b(%x: tensor<64xbf16>) -> tensor<64xbf16> {
  // expected-error@+1 {{'mega.map' op operand #0 has type 'tensor<64xbf16>', expected the result's shape, as in 'tensor<8x8xbf16>'}}
  %y = mega.map(%a = %x) : (tensor<64xbf16>) -> tensor<8x8xbf16> {
    mega.yield %a
  }
  mega.return %x : tensor<64xbf16>
}

// -----

mega.block @b(%x: tensor<64xbf16>) -> tensor<64xbf16> {
  %h = mega.slice %x from 0 : tensor<64xbf16> -> tensor<32xbf16>
  // expected-error@+1 {{'mega.map' op operand #1 has type 'tensor<32xbf16>', expected the result's shape, as in 'tensor<64xbf16>'}}
  %y = mega.map(%a = %x, %b = %h)
      : (tensor<64xbf16>, tensor<32xbf16>) -> tensor<64xbf16> {
    mega.yield %a
  }
  mega.return %x : tensor<64xbf16>
}

// -----

mega.block @b(%x: tensor<64xbf16>) -> tensor<64xbf16> {
  // expected-error@+1 {{'mega.map' op region has 2 arguments, expected 1}}
  %y = "mega.map"(%x) ({
  ^bb0(%a: f32, %b: f32):
    mega.yield %a
  }) : (tensor<64xbf16>) -> tensor<64xbf16>
  mega.return %x : tensor<64xbf16>
}

// -----

mega.block @b(%x: tensor<64xbf16>) -> tensor<64xbf16> {
  // expected-error@+1 {{'mega.map' op region argument has type 'bf16', expected f32}}
  %y = "mega.map"(%x) ({
  ^bb0(%a: bf16):
    %c = arith.constant 0.0 : f32
    mega.yield %c
  }) : (tensor<64xbf16>) -> tensor<64xbf16>
  mega.return %x : tensor<64xbf16>
}

// -----

mega.block @b(%x: tensor<64xbf16>) -> tensor<64xbf16> {
  // expected-error@+1 {{'mega.map' op region must end with mega.yield}}
  %y = mega.map(%a = %x) : (tensor<64xbf16>) -> tensor<64xbf16> {
    %n = arith.negf %a : f32
  }
  mega.return %x : tensor<64xbf16>
}

// -----

mega.block @b(%x: tensor<64xbf16>) -> tensor<64xbf16> {
  // expected-error@+1 {{'mega.map' op region holds 'arith.remf', expected scalar arith or math ops that elementwise work supports}}
  %y = mega.map(%a = %x) : (tensor<64xbf16>) -> tensor<64xbf16> {
    %r = arith.remf %a, %a : f32
    mega.yield %r
  }
  mega.return %x : tensor<64xbf16>
}

// -----

mega.block @b(%x: tensor<64xbf16>) -> tensor<64xbf16> {
  // expected-error@+1 {{'mega.map' op region holds a value of type 'i32', expected f32}}
  %y = mega.map(%a = %x) : (tensor<64xbf16>) -> tensor<64xbf16> {
    %i = arith.constant 1 : i32
    mega.yield %a
  }
  mega.return %x : tensor<64xbf16>
}

// -----

mega.block @b(%x: tensor<64xbf16>) -> tensor<64xbf16> {
  %c = arith.constant 1.0 : f32
  // expected-error@+1 {{'mega.map' op region uses a value from outside it, expected only its arguments}}
  %y = mega.map(%a = %x) : (tensor<64xbf16>) -> tensor<64xbf16> {
    %s = arith.addf %a, %c : f32
    mega.yield %s
  }
  mega.return %x : tensor<64xbf16>
}

// -----

mega.block @b(%x: tensor<64xbf16>) -> tensor<64xbf16> {
  // expected-error@+1 {{'mega.reshape' op turns 'tensor<64xbf16>' into 'tensor<4x8xbf16>', expected the same number and type of elements}}
  %y = mega.reshape %x : tensor<64xbf16> -> tensor<4x8xbf16>
  mega.return %x : tensor<64xbf16>
}

// -----

mega.block @b(%x: tensor<64xbf16>) -> tensor<64xbf16> {
  // expected-error@+1 {{'mega.reshape' op turns 'tensor<64xbf16>' into 'tensor<64xf32>', expected the same number and type of elements}}
  %y = mega.reshape %x : tensor<64xbf16> -> tensor<64xf32>
  mega.return %x : tensor<64xbf16>
}

// -----

mega.block @b(%x: tensor<64xbf16>) -> tensor<64xbf16> {
  %h = mega.reshape %x : tensor<64xbf16> -> tensor<4x16xbf16>
  // expected-error@+1 {{'mega.slice' op takes 'tensor<2x16xbf16>' from 'tensor<4x16xbf16>', expected them to differ in the last dimension only}}
  %y = mega.slice %h from 0 : tensor<4x16xbf16> -> tensor<2x16xbf16>
  mega.return %x : tensor<64xbf16>
}

// -----

mega.block @b(%x: tensor<64xbf16>) -> tensor<64xbf16> {
  // expected-error@+1 {{'mega.slice' op takes 'tensor<32xf32>' from 'tensor<64xbf16>', expected them to differ in the last dimension only}}
  %y = mega.slice %x from 0 : tensor<64xbf16> -> tensor<32xf32>
  mega.return %x : tensor<64xbf16>
}

// -----

mega.block @b(%x: tensor<64xbf16>) -> tensor<64xbf16> {
  // expected-error@+1 {{'mega.slice' op takes 32 elements from 48 of the last dimension, expected a non-empty range inside [0, 64)}}
  %y = mega.slice %x from 48 : tensor<64xbf16> -> tensor<32xbf16>
  mega.return %x : tensor<64xbf16>
}

// -----

mega.block @b(%x: tensor<64xbf16>) -> tensor<64xbf16> {
  // expected-error@+1 {{'mega.slice' op takes 32 elements from -1 of the last dimension, expected a non-empty range inside [0, 64)}}
  %y = mega.slice %x from -1 : tensor<64xbf16> -> tensor<32xbf16>
  mega.return %x : tensor<64xbf16>
}

// -----

mega.block @b(%x: tensor<64xbf16>) -> tensor<64xbf16> {
  // The end overflows; it must not wrap around into the range.
  // expected-error@+1 {{'mega.slice' op takes 32 elements from 9223372036854775807 of the last dimension, expected a non-empty range inside [0, 64)}}
  %y = mega.slice %x from 9223372036854775807 : tensor<64xbf16> -> tensor<32xbf16>
  mega.return %x : tensor<64xbf16>
}

// -----

mega.block @b(%x: tensor<64xbf16>) -> tensor<64xbf16> {
  // expected-error@+1 {{'mega.slice' op takes 0 elements from 8 of the last dimension, expected a non-empty range inside [0, 64)}}
  %y = mega.slice %x from 8 : tensor<64xbf16> -> tensor<0xbf16>
  mega.return %x : tensor<64xbf16>
}

// -----

// The custom syntax cannot say this one.
mega.block @b(%x: tensor<64xbf16>) -> tensor<64xbf16> {
  // expected-error@+1 {{'mega.map' op has 0 operands, expected at least 1}}
  %y = "mega.map"() ({
    %c = arith.constant 0.0 : f32
    mega.yield %c
  }) : () -> tensor<64xbf16>
  mega.return %y : tensor<64xbf16>
}

// -----

// Every value of a block is a static tensor of bf16 or f32.
mega.block @b(%x: tensor<64xbf16>) -> tensor<64xbf16> {
  // expected-error@+1 {{'mega.reshape' op result #0 must be static tensor of bf16 or f32, but got 'tensor<64xf16>'}}
  %y = mega.reshape %x : tensor<64xbf16> -> tensor<64xf16>
  mega.return %x : tensor<64xbf16>
}

// -----

mega.block @b(%x: tensor<64xbf16>) -> tensor<64xbf16> {
  // expected-error@+1 {{'mega.reshape' op result #0 must be static tensor of bf16 or f32, but got 'tensor<?xbf16>'}}
  %y = mega.reshape %x : tensor<64xbf16> -> tensor<?xbf16>
  mega.return %x : tensor<64xbf16>
}
