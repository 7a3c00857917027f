// SPDX-License-Identifier: Apache-2.0
// RUN: megalith-opt %s --split-input-file --verify-diagnostics

// expected-error@+1 {{'mega.program' op has arguments ('!mega.buffer<64xbf16>'), expected the input and the output buffer}}
mega.program @p(%in) : !mega.buffer<64xbf16> {}

// -----

// expected-error@+1 {{'mega.program' op has arguments ('!mega.buffer<64xbf16>', 'tensor<64xbf16>'), expected the input and the output buffer}}
mega.program @p(%in, %out) : !mega.buffer<64xbf16>, tensor<64xbf16> {}

// -----

// expected-error@+1 {{has 2 arguments and 1 types, expected as many}}
mega.program @p(%in, %out) : !mega.buffer<64xbf16> {}

// -----

mega.weight @w : !mega.quant<128x64xi4, group = 128, scale = bf16, zero = bf16>
mega.program @p(%in, %out) : !mega.buffer<128xbf16>, !mega.buffer<64xbf16> {
  mega.stage "s" tiles(8) {
    %x = mega.load %in : !mega.buffer<128xbf16> -> tensor<128xbf16>
    %y = mega.linear %x, @w tiling(<begin = 0, count = 4, extent = 16>)
        : tensor<128xbf16> -> tensor<64xbf16>
    // expected-error@+1 {{'mega.linear' op has no tiling in a partitioned stage}}
    %z = mega.linear %x, @w 
        : tensor<128xbf16> -> tensor<64xbf16>
  }
}

// -----

mega.weight @w : !mega.quant<128x64xi4, group = 128, scale = bf16, zero = bf16>
mega.program @p(%in, %out) : !mega.buffer<128xbf16>, !mega.buffer<64xbf16> {
  mega.stage "s" tiles(8) {
    %x = mega.load %in : !mega.buffer<128xbf16> -> tensor<128xbf16>
    %y = mega.linear %x, @w tiling(<begin = 0, count = 4, extent = 16>)
        : tensor<128xbf16> -> tensor<64xbf16>
    // expected-error@+1 {{'mega.linear' op has tiles from 3, expected from 4, where the previous anchor's end}}
    %z = mega.linear %x, @w tiling(<begin = 3, count = 4, extent = 16>)
        : tensor<128xbf16> -> tensor<64xbf16>
  }
}

// -----

mega.weight @w : !mega.quant<128x64xi4, group = 128, scale = bf16, zero = bf16>
mega.program @p(%in, %out) : !mega.buffer<128xbf16>, !mega.buffer<64xbf16> {
  // expected-error@+1 {{'mega.stage' op tile list has 9 tiles, expected 8}}
  mega.stage "s" tiles(9) {
    %x = mega.load %in : !mega.buffer<128xbf16> -> tensor<128xbf16>
    %y = mega.linear %x, @w tiling(<begin = 0, count = 4, extent = 16>)
        : tensor<128xbf16> -> tensor<64xbf16>
    %z = mega.linear %x, @w tiling(<begin = 4, count = 4, extent = 16>)
        : tensor<128xbf16> -> tensor<64xbf16>
  }
}

// -----

mega.program @p(%in, %out) : !mega.buffer<64xbf16>, !mega.buffer<64xbf16> {
  mega.stage "s" {
    // expected-error@+1 {{'mega.load' op moves 'tensor<64xf32>' and '!mega.buffer<64xbf16>', expected one element type}}
    %x = mega.load %in : !mega.buffer<64xbf16> -> tensor<64xf32>
  }
}

// -----

mega.program @p(%in, %out) : !mega.buffer<64xbf16>, !mega.buffer<64xbf16> {
  mega.stage "s" {
    // expected-error@+1 {{'mega.load' op buffer has 64 elements, expected 32}}
    %x = mega.load %in : !mega.buffer<64xbf16> -> tensor<32xbf16>
  }
}

// -----

mega.program @p(%in, %out) : !mega.buffer<64xbf16>, !mega.buffer<64xbf16> {
  mega.stage "s" {
    // expected-error@+1 {{'mega.load_sum' op adds slots of '!mega.buffer<64xbf16>', expected f32 partial sums}}
    %x = mega.load_sum %in : !mega.buffer<64xbf16> -> tensor<32xbf16>
  }
}

// -----

mega.program @p(%in, %out) : !mega.buffer<64xbf16>, !mega.buffer<64xbf16> {
  %b = mega.alloc "b" : !mega.buffer<4x16xf32>
  mega.stage "s" {
    // expected-error@+1 {{'mega.load_sum' op slot has 16 elements, expected 64}}
    %x = mega.load_sum %b : !mega.buffer<4x16xf32> -> tensor<64xbf16>
  }
}

// -----

mega.program @p(%in, %out) : !mega.buffer<64xbf16>, !mega.buffer<64xbf16> {
  mega.stage "s" {
    %x = mega.load %in : !mega.buffer<64xbf16> -> tensor<64xbf16>
    %b = mega.reshape %x : tensor<64xbf16> -> tensor<4x16xbf16>
    %c = mega.slice %b from 0 : tensor<4x16xbf16> -> tensor<4x8xbf16>
    // expected-error@+1 {{'mega.store' op buffer has 64 elements, expected 32}}
    mega.store %c, %out : tensor<4x8xbf16>, !mega.buffer<64xbf16>
  }
}

// -----

mega.program @p(%in, %out) : !mega.buffer<64xbf16>, !mega.buffer<64xbf16> {
  %f = mega.alloc "f" : !mega.buffer<64xf32>
  mega.stage "s" {
    %x = mega.load %in : !mega.buffer<64xbf16> -> tensor<64xbf16>
    // expected-error@+1 {{'mega.store' op moves 'tensor<64xbf16>' and '!mega.buffer<64xf32>', expected one element type}}
    mega.store %x, %f : tensor<64xbf16>, !mega.buffer<64xf32>
  }
}

// -----

mega.weight @w : !mega.quant<128x64xi4, group = 128, scale = bf16, zero = bf16>
mega.program @p(%in, %out) : !mega.buffer<128xbf16>, !mega.buffer<64xbf16> {
  %slots = mega.alloc "slots" : !mega.buffer<2x32xf32>
  mega.stage "s" tiles(4) {
    %x = mega.load %in : !mega.buffer<128xbf16> -> tensor<128xbf16>
    %y = mega.linear %x, @w
        tiling(<begin = 0, count = 4, extent = 16, split = true>)
        : tensor<128xbf16> -> tensor<64xbf16>
    // expected-error@+1 {{'mega.store' op slot has 32 elements, expected 64}}
    mega.store %y, %slots : tensor<64xbf16>, !mega.buffer<2x32xf32>
  }
}

// -----

mega.program @p(%in, %out) : !mega.buffer<64xbf16>, !mega.buffer<64xbf16> {
  mega.stage "s" {
    // expected-error@+1 {{access has 2 tile dimensions, expected 1}}
    %x = mega.load %in access(<affine_map<(d0, d1)[s0] -> (s0)>, [4]>)
        : !mega.buffer<64xbf16> -> tensor<64xbf16>
  }
}

// -----

mega.program @p(%in, %out) : !mega.buffer<64xbf16>, !mega.buffer<64xbf16> {
  mega.stage "s" {
    // expected-error@+1 {{access has 2 extents, expected one per symbol (1)}}
    %x = mega.load %in access(<affine_map<(d0)[s0] -> (s0)>, [4, 16]>)
        : !mega.buffer<64xbf16> -> tensor<64xbf16>
  }
}
