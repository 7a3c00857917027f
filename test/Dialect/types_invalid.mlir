// SPDX-License-Identifier: Apache-2.0
// RUN: megalith-opt %s --split-input-file --verify-diagnostics

// expected-error@+1 {{quantised weight has rank 1, expected 2 (inputs x outputs) or 3 (experts x inputs x outputs)}}
mega.weight @w : !mega.quant<256xi4, group = 128, scale = bf16, zero = bf16>

// -----

// expected-error@+1 {{quantised weight has rank 4, expected 2}}
mega.weight @w : !mega.quant<2x2x256x64xi4, group = 128, scale = bf16, zero = bf16>

// -----

// expected-error@+1 {{quantised weight has dimension 0, expected a positive one}}
mega.weight @w : !mega.quant<256x0xi4, group = 128, scale = bf16, zero = bf16>

// -----

// expected-error@+1 {{quantised weight has codes of type 'i8', expected i4}}
mega.weight @w : !mega.quant<256x64xi8, group = 128, scale = bf16, zero = bf16>

// -----

// expected-error@+1 {{quantised weight has scale 'f32' and zero 'bf16', expected bf16}}
mega.weight @w : !mega.quant<256x64xi4, group = 128, scale = f32, zero = bf16>

// -----

// expected-error@+1 {{quantised weight has scale 'bf16' and zero 'i8', expected bf16}}
mega.weight @w : !mega.quant<256x64xi4, group = 128, scale = bf16, zero = i8>

// -----

// expected-error@+1 {{quantised weight has group 16, expected 32, 64, 128 or a multiple of 128}}
mega.weight @w : !mega.quant<256x64xi4, group = 16, scale = bf16, zero = bf16>

// -----

// expected-error@+1 {{quantised weight has group 96, expected 32, 64, 128 or a multiple of 128}}
mega.weight @w : !mega.quant<192x64xi4, group = 96, scale = bf16, zero = bf16>

// -----

// expected-error@+1 {{quantised weight has group 0, expected 32, 64, 128 or a multiple of 128}}
mega.weight @w : !mega.quant<256x64xi4, group = 0, scale = bf16, zero = bf16>

// -----

// In-features that the group does not divide.
// expected-error@+1 {{quantised weight has 320 inputs, expected a multiple of the group 128}}
mega.weight @w : !mega.quant<320x64xi4, group = 128, scale = bf16, zero = bf16>

// -----

// The experts come first: it is the middle dimension that counts.
// expected-error@+1 {{quantised weight has 100 inputs, expected a multiple of the group 128}}
mega.weight @w : !mega.quant<128x100x64xi4, group = 128, scale = bf16, zero = bf16>

// -----

mega.program @p(%in, %out) : !mega.buffer<64xbf16>, !mega.buffer<64xbf16> {
  // expected-error@+1 {{buffer has element type 'f64', expected bf16, f32 or i32}}
  %b = mega.alloc "b" : !mega.buffer<8xf64>
}

// -----

mega.program @p(%in, %out) : !mega.buffer<64xbf16>, !mega.buffer<64xbf16> {
  // expected-error@+1 {{buffer has dimension 0, expected a positive one}}
  %b = mega.alloc "b" : !mega.buffer<8x0xf32>
}
