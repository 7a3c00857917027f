// SPDX-License-Identifier: Apache-2.0
// RUN: megalith-opt %s --split-input-file --verify-diagnostics

// expected-error@+1 {{'mega.weight' op has type 'tensor<64xf16>', expected a static tensor of bf16 or f32 or a !mega.quant}}
mega.weight @w : tensor<64xf16>

// -----

// expected-error@+1 {{'mega.weight' op has type 'tensor<?x64xbf16>', expected a static tensor}}
mega.weight @w : tensor<?x64xbf16>

// -----

// expected-error@+1 {{'mega.weight' op has type 'tensor<*xbf16>', expected a static tensor}}
mega.weight @w : tensor<*xbf16>

// -----

// expected-error@+1 {{'mega.weight' op has type 'f32', expected a static tensor}}
mega.weight @w : f32

// -----

// expected-error@+1 {{'mega.state' op has type 'tensor<64xi32>', expected a tensor of bf16 or f32}}
mega.state @s : tensor<64xi32>

// -----

// expected-error@+1 {{'mega.state' op has type 'tensor<*xf32>', expected a tensor of bf16 or f32}}
mega.state @s : tensor<*xf32>

// -----

// expected-error@+1 {{'mega.state' op has dynamic dimension 1, expected only the leading one to be dynamic}}
mega.state @s : tensor<64x?xbf16>

// -----

// expected-error@+1 {{'mega.state' op has rank 1, expected a cache of rank 2 or more}}
mega.state @s : tensor<?xbf16>

// -----

// expected-error@+1 {{'mega.weight' op has type 'tensor<64x0xbf16>', expected positive dimensions}}
mega.weight @w : tensor<64x0xbf16>

// -----

// expected-error@+1 {{'mega.state' op has type 'tensor<?x0xbf16>', expected positive dimensions}}
mega.state @s : tensor<?x0xbf16>

// -----

// expected-error@+1 {{expected a non-empty rank-1 tensor of bf16 or f32 in and out}}
mega.block @b(%x: tensor<0xbf16>) -> tensor<0xbf16> {
  mega.return %x : tensor<0xbf16>
}

// -----

// One name, one tensor.
// expected-note@+1 {{see existing symbol definition here}}
mega.weight @w : tensor<64xbf16>
// expected-error@+1 {{redefinition of symbol named 'w'}}
mega.weight @w : tensor<64xbf16>

// -----

// expected-error@+1 {{'mega.block' op has 2 arguments and 1 results, expected one of each}}
mega.block @b(%x: tensor<64xbf16>, %y: tensor<64xbf16>) -> tensor<64xbf16> {
  mega.return %x : tensor<64xbf16>
}

// -----

// expected-error@+1 {{'mega.block' op has 1 arguments and 0 results, expected one of each}}
mega.block @b(%x: tensor<64xbf16>) {
  mega.return %x : tensor<64xbf16>
}

// -----

// expected-error@+1 {{'mega.block' op has type '(tensor<1x64xbf16>) -> tensor<64xbf16>', expected a non-empty rank-1 tensor of bf16 or f32 in and out}}
mega.block @b(%x: tensor<1x64xbf16>) -> tensor<64xbf16> {
  mega.return %x : tensor<1x64xbf16>
}

// -----

// expected-error@+1 {{'mega.block' op has type '(tensor<64xbf16>) -> tensor<?xbf16>', expected a non-empty rank-1 tensor of bf16 or f32 in and out}}
mega.block @b(%x: tensor<64xbf16>) -> tensor<?xbf16> {
  mega.return %x : tensor<64xbf16>
}

// -----

// expected-error@+1 {{'mega.block' op region #0 ('body') failed to verify constraint: region with 1 blocks}}
mega.block @no_body(%x: tensor<64xbf16>) -> tensor<64xbf16>

// -----

mega.block @b(%x: tensor<64xbf16>) -> tensor<32xbf16> {
  // expected-error@+1 {{'mega.return' op returns 'tensor<64xbf16>', expected the block's result type 'tensor<32xbf16>'}}
  mega.return %x : tensor<64xbf16>
}

// -----

mega.block @b(%x: tensor<64xbf16>) -> tensor<64xbf16> {
  // expected-error@+1 {{'mega.return' op returns 'tensor<64xbf16>', 'tensor<64xbf16>', expected the block's result type 'tensor<64xbf16>'}}
  mega.return %x, %x : tensor<64xbf16>, tensor<64xbf16>
}
