// SPDX-License-Identifier: Apache-2.0
// RUN: megalith-opt %s --split-input-file --verify-diagnostics

mega.weight @gate : !mega.quant<4x128x256xi4, group = 128, scale = bf16, zero = bf16>
mega.weight @up : !mega.quant<4x128x256xi4, group = 128, scale = bf16, zero = bf16>
mega.weight @down : !mega.quant<4x256x128xi4, group = 128, scale = bf16, zero = bf16>
mega.weight @s_gate : !mega.quant<1x128x256xi4, group = 128, scale = bf16, zero = bf16>
mega.weight @s_up : !mega.quant<1x128x256xi4, group = 128, scale = bf16, zero = bf16>
mega.weight @s_down : !mega.quant<1x256x128xi4, group = 128, scale = bf16, zero = bf16>
mega.block @b(%x: tensor<128xbf16>) -> tensor<128xbf16> {
  %lg = mega.slice %x from 0 : tensor<128xbf16> -> tensor<8xbf16>
  %ids, %w = mega.router %lg softmax scale(1.0)
      : tensor<8xbf16> -> tensor<2xi32>, tensor<2xf32>
  // expected-error@+1 {{'mega.experts' op maps 'tensor<128xbf16>' to 'tensor<1x128xbf16>', expected rank-1 tensors}}
  %y = mega.experts(%x, %ids, %w) gate @gate up @up down @down shared @s_gate, @s_up, @s_down
      : tensor<128xbf16>, tensor<2xi32>, tensor<2xf32> -> tensor<1x128xbf16> {
  ^bb0(%g: f32, %u: f32):
    %h = arith.mulf %g, %u : f32
    mega.yield %h
  }
  mega.return %x : tensor<128xbf16>
}

// -----

mega.weight @gate : !mega.quant<4x128x256xi4, group = 128, scale = bf16, zero = bf16>
mega.weight @up : !mega.quant<4x128x256xi4, group = 128, scale = bf16, zero = bf16>
mega.weight @down : !mega.quant<4x256x128xi4, group = 128, scale = bf16, zero = bf16>
mega.weight @s_gate : !mega.quant<1x128x256xi4, group = 128, scale = bf16, zero = bf16>
mega.weight @s_up : !mega.quant<1x128x256xi4, group = 128, scale = bf16, zero = bf16>
mega.weight @s_down : !mega.quant<1x256x128xi4, group = 128, scale = bf16, zero = bf16>
mega.block @b(%x: tensor<128xbf16>) -> tensor<128xbf16> {
  %lg = mega.slice %x from 0 : tensor<128xbf16> -> tensor<8xbf16>
  %ids, %w = mega.router %lg softmax scale(1.0)
      : tensor<8xbf16> -> tensor<2xi32>, tensor<2xf32>
  %w2, %ws = mega.router %lg softmax scale(1.0)
      : tensor<8xbf16> -> tensor<3xi32>, tensor<3xf32>
  // expected-error@+1 {{'mega.experts' op has ids 'tensor<2xi32>' and weights 'tensor<3xf32>', expected one size}}
  %y = mega.experts(%x, %ids, %ws) gate @gate up @up down @down shared @s_gate, @s_up, @s_down
      : tensor<128xbf16>, tensor<2xi32>, tensor<3xf32> -> tensor<128xbf16> {
  ^bb0(%g: f32, %u: f32):
    %h = arith.mulf %g, %u : f32
    mega.yield %h
  }
  mega.return %x : tensor<128xbf16>
}

// -----

mega.weight @gate : !mega.quant<4x128x256xi4, group = 128, scale = bf16, zero = bf16>
mega.weight @up : !mega.quant<4x128x256xi4, group = 128, scale = bf16, zero = bf16>
mega.weight @down : !mega.quant<4x256x128xi4, group = 128, scale = bf16, zero = bf16>
mega.weight @s_gate : !mega.quant<1x128x256xi4, group = 128, scale = bf16, zero = bf16>
mega.weight @s_up : !mega.quant<1x128x256xi4, group = 128, scale = bf16, zero = bf16>
mega.weight @s_down : !mega.quant<1x256x128xi4, group = 128, scale = bf16, zero = bf16>
mega.block @b(%x: tensor<128xbf16>) -> tensor<128xbf16> {
  %lg = mega.slice %x from 0 : tensor<128xbf16> -> tensor<8xbf16>
  %ids, %w = mega.router %lg softmax scale(1.0)
      : tensor<8xbf16> -> tensor<2xi32>, tensor<2xf32>
  // expected-error@+1 {{'mega.experts' op region has 1 arguments, expected 2}}
  %y = mega.experts(%x, %ids, %w) gate @gate up @up down @down shared @s_gate, @s_up, @s_down
      : tensor<128xbf16>, tensor<2xi32>, tensor<2xf32> -> tensor<128xbf16> {
  ^bb0(%g: f32):
    mega.yield %g
  }
  mega.return %x : tensor<128xbf16>
}

// -----

mega.weight @gate : !mega.quant<4x128x256xi4, group = 128, scale = bf16, zero = bf16>
mega.weight @up : !mega.quant<4x128x256xi4, group = 128, scale = bf16, zero = bf16>
mega.weight @down : !mega.quant<4x256x128xi4, group = 128, scale = bf16, zero = bf16>
mega.weight @s_gate : !mega.quant<1x128x256xi4, group = 128, scale = bf16, zero = bf16>
mega.weight @s_up : !mega.quant<1x128x256xi4, group = 128, scale = bf16, zero = bf16>
mega.weight @s_down : !mega.quant<1x256x128xi4, group = 128, scale = bf16, zero = bf16>
mega.block @b(%x: tensor<128xbf16>) -> tensor<128xbf16> {
  %lg = mega.slice %x from 0 : tensor<128xbf16> -> tensor<8xbf16>
  %ids, %w = mega.router %lg softmax scale(1.0)
      : tensor<8xbf16> -> tensor<2xi32>, tensor<2xf32>
  // expected-error@+1 {{'mega.experts' op region must end with mega.yield}}
  %y = mega.experts(%x, %ids, %w) gate @gate up @up down @down shared @s_gate, @s_up, @s_down
      : tensor<128xbf16>, tensor<2xi32>, tensor<2xf32> -> tensor<128xbf16> {
  ^bb0(%g: f32, %u: f32):
    %h = arith.mulf %g, %u : f32
  }
  mega.return %x : tensor<128xbf16>
}

// -----

mega.weight @up : !mega.quant<4x128x256xi4, group = 128, scale = bf16, zero = bf16>
mega.weight @down : !mega.quant<4x256x128xi4, group = 128, scale = bf16, zero = bf16>
mega.weight @s_gate : !mega.quant<1x128x256xi4, group = 128, scale = bf16, zero = bf16>
mega.weight @s_up : !mega.quant<1x128x256xi4, group = 128, scale = bf16, zero = bf16>
mega.weight @s_down : !mega.quant<1x256x128xi4, group = 128, scale = bf16, zero = bf16>
mega.block @b(%x: tensor<128xbf16>) -> tensor<128xbf16> {
  %lg = mega.slice %x from 0 : tensor<128xbf16> -> tensor<8xbf16>
  %ids, %w = mega.router %lg softmax scale(1.0)
      : tensor<8xbf16> -> tensor<2xi32>, tensor<2xf32>
  // expected-error@+1 {{'mega.experts' op uses weight @gate, which no mega.weight declares}}
  %y = mega.experts(%x, %ids, %w) gate @gate up @up down @down shared @s_gate, @s_up, @s_down
      : tensor<128xbf16>, tensor<2xi32>, tensor<2xf32> -> tensor<128xbf16> {
  ^bb0(%g: f32, %u: f32):
    %h = arith.mulf %g, %u : f32
    mega.yield %h
  }
  mega.return %x : tensor<128xbf16>
}

// -----

mega.weight @gate : !mega.quant<4x128x256xi4, group = 128, scale = bf16, zero = bf16>
mega.weight @down : !mega.quant<4x256x128xi4, group = 128, scale = bf16, zero = bf16>
mega.weight @s_gate : !mega.quant<1x128x256xi4, group = 128, scale = bf16, zero = bf16>
mega.weight @s_up : !mega.quant<1x128x256xi4, group = 128, scale = bf16, zero = bf16>
mega.weight @s_down : !mega.quant<1x256x128xi4, group = 128, scale = bf16, zero = bf16>
mega.block @b(%x: tensor<128xbf16>) -> tensor<128xbf16> {
  %lg = mega.slice %x from 0 : tensor<128xbf16> -> tensor<8xbf16>
  %ids, %w = mega.router %lg softmax scale(1.0)
      : tensor<8xbf16> -> tensor<2xi32>, tensor<2xf32>
  // expected-error@+1 {{'mega.experts' op uses weight @up, which no mega.weight declares}}
  %y = mega.experts(%x, %ids, %w) gate @gate up @up down @down shared @s_gate, @s_up, @s_down
      : tensor<128xbf16>, tensor<2xi32>, tensor<2xf32> -> tensor<128xbf16> {
  ^bb0(%g: f32, %u: f32):
    %h = arith.mulf %g, %u : f32
    mega.yield %h
  }
  mega.return %x : tensor<128xbf16>
}

// -----

mega.weight @gate : !mega.quant<4x128x256xi4, group = 128, scale = bf16, zero = bf16>
mega.weight @up : !mega.quant<4x128x256xi4, group = 128, scale = bf16, zero = bf16>
mega.weight @s_gate : !mega.quant<1x128x256xi4, group = 128, scale = bf16, zero = bf16>
mega.weight @s_up : !mega.quant<1x128x256xi4, group = 128, scale = bf16, zero = bf16>
mega.weight @s_down : !mega.quant<1x256x128xi4, group = 128, scale = bf16, zero = bf16>
mega.block @b(%x: tensor<128xbf16>) -> tensor<128xbf16> {
  %lg = mega.slice %x from 0 : tensor<128xbf16> -> tensor<8xbf16>
  %ids, %w = mega.router %lg softmax scale(1.0)
      : tensor<8xbf16> -> tensor<2xi32>, tensor<2xf32>
  // expected-error@+1 {{'mega.experts' op uses weight @down, which no mega.weight declares}}
  %y = mega.experts(%x, %ids, %w) gate @gate up @up down @down shared @s_gate, @s_up, @s_down
      : tensor<128xbf16>, tensor<2xi32>, tensor<2xf32> -> tensor<128xbf16> {
  ^bb0(%g: f32, %u: f32):
    %h = arith.mulf %g, %u : f32
    mega.yield %h
  }
  mega.return %x : tensor<128xbf16>
}

// -----

mega.weight @gate : !mega.quant<4x128x256xi4, group = 128, scale = bf16, zero = bf16>
mega.weight @up : !mega.quant<4x128x256xi4, group = 128, scale = bf16, zero = bf16>
mega.weight @down : !mega.quant<4x256x128xi4, group = 128, scale = bf16, zero = bf16>
mega.weight @s_gate : !mega.quant<1x128x256xi4, group = 128, scale = bf16, zero = bf16>
mega.weight @s_down : !mega.quant<1x256x128xi4, group = 128, scale = bf16, zero = bf16>
mega.block @b(%x: tensor<128xbf16>) -> tensor<128xbf16> {
  %lg = mega.slice %x from 0 : tensor<128xbf16> -> tensor<8xbf16>
  %ids, %w = mega.router %lg softmax scale(1.0)
      : tensor<8xbf16> -> tensor<2xi32>, tensor<2xf32>
  // expected-error@+1 {{'mega.experts' op uses weight @s_up, which no mega.weight declares}}
  %y = mega.experts(%x, %ids, %w) gate @gate up @up down @down shared @s_gate, @s_up, @s_down
      : tensor<128xbf16>, tensor<2xi32>, tensor<2xf32> -> tensor<128xbf16> {
  ^bb0(%g: f32, %u: f32):
    %h = arith.mulf %g, %u : f32
    mega.yield %h
  }
  mega.return %x : tensor<128xbf16>
}

// -----

mega.weight @gate : tensor<4x128x256xbf16>
mega.weight @up : !mega.quant<4x128x256xi4, group = 128, scale = bf16, zero = bf16>
mega.weight @down : !mega.quant<4x256x128xi4, group = 128, scale = bf16, zero = bf16>
mega.weight @s_gate : !mega.quant<1x128x256xi4, group = 128, scale = bf16, zero = bf16>
mega.weight @s_up : !mega.quant<1x128x256xi4, group = 128, scale = bf16, zero = bf16>
mega.weight @s_down : !mega.quant<1x256x128xi4, group = 128, scale = bf16, zero = bf16>
mega.block @b(%x: tensor<128xbf16>) -> tensor<128xbf16> {
  %lg = mega.slice %x from 0 : tensor<128xbf16> -> tensor<8xbf16>
  %ids, %w = mega.router %lg softmax scale(1.0)
      : tensor<8xbf16> -> tensor<2xi32>, tensor<2xf32>
  // expected-error@+1 {{'mega.experts' op uses weight @gate of type 'tensor<4x128x256xbf16>', expected a !mega.quant}}
  %y = mega.experts(%x, %ids, %w) gate @gate up @up down @down shared @s_gate, @s_up, @s_down
      : tensor<128xbf16>, tensor<2xi32>, tensor<2xf32> -> tensor<128xbf16> {
  ^bb0(%g: f32, %u: f32):
    %h = arith.mulf %g, %u : f32
    mega.yield %h
  }
  mega.return %x : tensor<128xbf16>
}

// -----

mega.weight @gate : !mega.quant<4x128x256xi4, group = 128, scale = bf16, zero = bf16>
mega.weight @up : !mega.quant<4x128x256xi4, group = 128, scale = bf16, zero = bf16>
mega.weight @down : !mega.quant<256x128xi4, group = 128, scale = bf16, zero = bf16>
mega.weight @s_gate : !mega.quant<1x128x256xi4, group = 128, scale = bf16, zero = bf16>
mega.weight @s_up : !mega.quant<1x128x256xi4, group = 128, scale = bf16, zero = bf16>
mega.weight @s_down : !mega.quant<1x256x128xi4, group = 128, scale = bf16, zero = bf16>
mega.block @b(%x: tensor<128xbf16>) -> tensor<128xbf16> {
  %lg = mega.slice %x from 0 : tensor<128xbf16> -> tensor<8xbf16>
  %ids, %w = mega.router %lg softmax scale(1.0)
      : tensor<8xbf16> -> tensor<2xi32>, tensor<2xf32>
  // expected-error@+1 {{'mega.experts' op uses weight @down of type '!mega.quant<256x128xi4, group = 128, scale = bf16, zero = bf16>', expected a stack of experts}}
  %y = mega.experts(%x, %ids, %w) gate @gate up @up down @down shared @s_gate, @s_up, @s_down
      : tensor<128xbf16>, tensor<2xi32>, tensor<2xf32> -> tensor<128xbf16> {
  ^bb0(%g: f32, %u: f32):
    %h = arith.mulf %g, %u : f32
    mega.yield %h
  }
  mega.return %x : tensor<128xbf16>
}

// -----

mega.weight @gate : !mega.quant<4x128x256xi4, group = 128, scale = bf16, zero = bf16>
mega.weight @up : !mega.quant<4x128x384xi4, group = 128, scale = bf16, zero = bf16>
mega.weight @down : !mega.quant<4x256x128xi4, group = 128, scale = bf16, zero = bf16>
mega.weight @s_gate : !mega.quant<1x128x256xi4, group = 128, scale = bf16, zero = bf16>
mega.weight @s_up : !mega.quant<1x128x256xi4, group = 128, scale = bf16, zero = bf16>
mega.weight @s_down : !mega.quant<1x256x128xi4, group = 128, scale = bf16, zero = bf16>
mega.block @b(%x: tensor<128xbf16>) -> tensor<128xbf16> {
  %lg = mega.slice %x from 0 : tensor<128xbf16> -> tensor<8xbf16>
  %ids, %w = mega.router %lg softmax scale(1.0)
      : tensor<8xbf16> -> tensor<2xi32>, tensor<2xf32>
  // expected-error@+1 {{'mega.experts' op has gate '!mega.quant<4x128x256xi4, group = 128, scale = bf16, zero = bf16>' and up '!mega.quant<4x128x384xi4, group = 128, scale = bf16, zero = bf16>', expected one type}}
  %y = mega.experts(%x, %ids, %w) gate @gate up @up down @down shared @s_gate, @s_up, @s_down
      : tensor<128xbf16>, tensor<2xi32>, tensor<2xf32> -> tensor<128xbf16> {
  ^bb0(%g: f32, %u: f32):
    %h = arith.mulf %g, %u : f32
    mega.yield %h
  }
  mega.return %x : tensor<128xbf16>
}

// -----

mega.weight @gate : !mega.quant<4x256x256xi4, group = 128, scale = bf16, zero = bf16>
mega.weight @up : !mega.quant<4x256x256xi4, group = 128, scale = bf16, zero = bf16>
mega.weight @down : !mega.quant<4x256x128xi4, group = 128, scale = bf16, zero = bf16>
mega.weight @s_gate : !mega.quant<1x128x256xi4, group = 128, scale = bf16, zero = bf16>
mega.weight @s_up : !mega.quant<1x128x256xi4, group = 128, scale = bf16, zero = bf16>
mega.weight @s_down : !mega.quant<1x256x128xi4, group = 128, scale = bf16, zero = bf16>
mega.block @b(%x: tensor<128xbf16>) -> tensor<128xbf16> {
  %lg = mega.slice %x from 0 : tensor<128xbf16> -> tensor<8xbf16>
  %ids, %w = mega.router %lg softmax scale(1.0)
      : tensor<8xbf16> -> tensor<2xi32>, tensor<2xf32>
  // expected-error@+1 {{'mega.experts' op weight @gate has 256 inputs, expected 128}}
  %y = mega.experts(%x, %ids, %w) gate @gate up @up down @down shared @s_gate, @s_up, @s_down
      : tensor<128xbf16>, tensor<2xi32>, tensor<2xf32> -> tensor<128xbf16> {
  ^bb0(%g: f32, %u: f32):
    %h = arith.mulf %g, %u : f32
    mega.yield %h
  }
  mega.return %x : tensor<128xbf16>
}

// -----

mega.weight @gate : !mega.quant<4x128x256xi4, group = 128, scale = bf16, zero = bf16>
mega.weight @up : !mega.quant<4x128x256xi4, group = 128, scale = bf16, zero = bf16>
mega.weight @down : !mega.quant<4x384x128xi4, group = 128, scale = bf16, zero = bf16>
mega.weight @s_gate : !mega.quant<1x128x256xi4, group = 128, scale = bf16, zero = bf16>
mega.weight @s_up : !mega.quant<1x128x256xi4, group = 128, scale = bf16, zero = bf16>
mega.weight @s_down : !mega.quant<1x256x128xi4, group = 128, scale = bf16, zero = bf16>
mega.block @b(%x: tensor<128xbf16>) -> tensor<128xbf16> {
  %lg = mega.slice %x from 0 : tensor<128xbf16> -> tensor<8xbf16>
  %ids, %w = mega.router %lg softmax scale(1.0)
      : tensor<8xbf16> -> tensor<2xi32>, tensor<2xf32>
  // expected-error@+1 {{'mega.experts' op weight @down has 384 inputs, expected 256}}
  %y = mega.experts(%x, %ids, %w) gate @gate up @up down @down shared @s_gate, @s_up, @s_down
      : tensor<128xbf16>, tensor<2xi32>, tensor<2xf32> -> tensor<128xbf16> {
  ^bb0(%g: f32, %u: f32):
    %h = arith.mulf %g, %u : f32
    mega.yield %h
  }
  mega.return %x : tensor<128xbf16>
}

// -----

mega.weight @gate : !mega.quant<4x128x256xi4, group = 128, scale = bf16, zero = bf16>
mega.weight @up : !mega.quant<4x128x256xi4, group = 128, scale = bf16, zero = bf16>
mega.weight @down : !mega.quant<4x256x64xi4, group = 128, scale = bf16, zero = bf16>
mega.weight @s_gate : !mega.quant<1x128x256xi4, group = 128, scale = bf16, zero = bf16>
mega.weight @s_up : !mega.quant<1x128x256xi4, group = 128, scale = bf16, zero = bf16>
mega.weight @s_down : !mega.quant<1x256x128xi4, group = 128, scale = bf16, zero = bf16>
mega.block @b(%x: tensor<128xbf16>) -> tensor<128xbf16> {
  %lg = mega.slice %x from 0 : tensor<128xbf16> -> tensor<8xbf16>
  %ids, %w = mega.router %lg softmax scale(1.0)
      : tensor<8xbf16> -> tensor<2xi32>, tensor<2xf32>
  // expected-error@+1 {{'mega.experts' op weight @down has 64 outputs, expected 128}}
  %y = mega.experts(%x, %ids, %w) gate @gate up @up down @down shared @s_gate, @s_up, @s_down
      : tensor<128xbf16>, tensor<2xi32>, tensor<2xf32> -> tensor<128xbf16> {
  ^bb0(%g: f32, %u: f32):
    %h = arith.mulf %g, %u : f32
    mega.yield %h
  }
  mega.return %x : tensor<128xbf16>
}

// -----

mega.weight @gate : !mega.quant<4x128x256xi4, group = 128, scale = bf16, zero = bf16>
mega.weight @up : !mega.quant<4x128x256xi4, group = 128, scale = bf16, zero = bf16>
mega.weight @down : !mega.quant<8x256x128xi4, group = 128, scale = bf16, zero = bf16>
mega.weight @s_gate : !mega.quant<1x128x256xi4, group = 128, scale = bf16, zero = bf16>
mega.weight @s_up : !mega.quant<1x128x256xi4, group = 128, scale = bf16, zero = bf16>
mega.weight @s_down : !mega.quant<1x256x128xi4, group = 128, scale = bf16, zero = bf16>
mega.block @b(%x: tensor<128xbf16>) -> tensor<128xbf16> {
  %lg = mega.slice %x from 0 : tensor<128xbf16> -> tensor<8xbf16>
  %ids, %w = mega.router %lg softmax scale(1.0)
      : tensor<8xbf16> -> tensor<2xi32>, tensor<2xf32>
  // expected-error@+1 {{'mega.experts' op weight @down has 8 experts, expected 4}}
  %y = mega.experts(%x, %ids, %w) gate @gate up @up down @down shared @s_gate, @s_up, @s_down
      : tensor<128xbf16>, tensor<2xi32>, tensor<2xf32> -> tensor<128xbf16> {
  ^bb0(%g: f32, %u: f32):
    %h = arith.mulf %g, %u : f32
    mega.yield %h
  }
  mega.return %x : tensor<128xbf16>
}

// -----

// Top-k above the expert count.
mega.weight @gate : !mega.quant<4x128x256xi4, group = 128, scale = bf16, zero = bf16>
mega.weight @up : !mega.quant<4x128x256xi4, group = 128, scale = bf16, zero = bf16>
mega.weight @down : !mega.quant<4x256x128xi4, group = 128, scale = bf16, zero = bf16>
mega.weight @s_gate : !mega.quant<1x128x256xi4, group = 128, scale = bf16, zero = bf16>
mega.weight @s_up : !mega.quant<1x128x256xi4, group = 128, scale = bf16, zero = bf16>
mega.weight @s_down : !mega.quant<1x256x128xi4, group = 128, scale = bf16, zero = bf16>
mega.block @b(%x: tensor<128xbf16>) -> tensor<128xbf16> {
  %lg = mega.slice %x from 0 : tensor<128xbf16> -> tensor<8xbf16>
  %ids, %w = mega.router %lg softmax scale(1.0)
      : tensor<8xbf16> -> tensor<5xi32>, tensor<5xf32>
  // expected-error@+1 {{'mega.experts' op takes 5 experts, expected at most the 4 of weight @gate}}
  %y = mega.experts(%x, %ids, %w) gate @gate up @up down @down shared @s_gate, @s_up, @s_down
      : tensor<128xbf16>, tensor<5xi32>, tensor<5xf32> -> tensor<128xbf16> {
  ^bb0(%g: f32, %u: f32):
    %h = arith.mulf %g, %u : f32
    mega.yield %h
  }
  mega.return %x : tensor<128xbf16>
}

// -----

mega.weight @gate : !mega.quant<4x128x256xi4, group = 128, scale = bf16, zero = bf16>
mega.weight @up : !mega.quant<4x128x256xi4, group = 128, scale = bf16, zero = bf16>
mega.weight @down : !mega.quant<4x256x128xi4, group = 128, scale = bf16, zero = bf16>
mega.weight @s_gate : !mega.quant<1x128x128xi4, group = 128, scale = bf16, zero = bf16>
mega.weight @s_up : !mega.quant<1x128x128xi4, group = 128, scale = bf16, zero = bf16>
mega.weight @s_down : !mega.quant<1x128x128xi4, group = 128, scale = bf16, zero = bf16>
mega.block @b(%x: tensor<128xbf16>) -> tensor<128xbf16> {
  %lg = mega.slice %x from 0 : tensor<128xbf16> -> tensor<8xbf16>
  %ids, %w = mega.router %lg softmax scale(1.0)
      : tensor<8xbf16> -> tensor<2xi32>, tensor<2xf32>
  // expected-error@+1 {{'mega.experts' op has shared gate '!mega.quant<1x128x128xi4, group = 128, scale = bf16, zero = bf16>' beside gate '!mega.quant<4x128x256xi4, group = 128, scale = bf16, zero = bf16>', expected one hidden size and group}}
  %y = mega.experts(%x, %ids, %w) gate @gate up @up down @down shared @s_gate, @s_up, @s_down
      : tensor<128xbf16>, tensor<2xi32>, tensor<2xf32> -> tensor<128xbf16> {
  ^bb0(%g: f32, %u: f32):
    %h = arith.mulf %g, %u : f32
    mega.yield %h
  }
  mega.return %x : tensor<128xbf16>
}

// -----

mega.weight @gate : !mega.quant<4x128x256xi4, group = 128, scale = bf16, zero = bf16>
mega.weight @up : !mega.quant<4x128x256xi4, group = 128, scale = bf16, zero = bf16>
mega.weight @down : !mega.quant<4x256x128xi4, group = 128, scale = bf16, zero = bf16>
mega.weight @s_gate : !mega.quant<1x128x256xi4, group = 64, scale = bf16, zero = bf16>
mega.weight @s_up : !mega.quant<1x128x256xi4, group = 64, scale = bf16, zero = bf16>
mega.weight @s_down : !mega.quant<1x256x128xi4, group = 128, scale = bf16, zero = bf16>
mega.block @b(%x: tensor<128xbf16>) -> tensor<128xbf16> {
  %lg = mega.slice %x from 0 : tensor<128xbf16> -> tensor<8xbf16>
  %ids, %w = mega.router %lg softmax scale(1.0)
      : tensor<8xbf16> -> tensor<2xi32>, tensor<2xf32>
  // expected-error@+1 {{'mega.experts' op has shared gate '!mega.quant<1x128x256xi4, group = 64, scale = bf16, zero = bf16>' beside gate '!mega.quant<4x128x256xi4, group = 128, scale = bf16, zero = bf16>', expected one hidden size and group}}
  %y = mega.experts(%x, %ids, %w) gate @gate up @up down @down shared @s_gate, @s_up, @s_down
      : tensor<128xbf16>, tensor<2xi32>, tensor<2xf32> -> tensor<128xbf16> {
  ^bb0(%g: f32, %u: f32):
    %h = arith.mulf %g, %u : f32
    mega.yield %h
  }
  mega.return %x : tensor<128xbf16>
}

// -----

// The generic form can name a part of the triple.
mega.weight @gate : !mega.quant<4x128x256xi4, group = 128, scale = bf16, zero = bf16>
mega.weight @up : !mega.quant<4x128x256xi4, group = 128, scale = bf16, zero = bf16>
mega.weight @down : !mega.quant<4x256x128xi4, group = 128, scale = bf16, zero = bf16>
mega.weight @s_gate : !mega.quant<1x128x256xi4, group = 128, scale = bf16, zero = bf16>
mega.weight @s_up : !mega.quant<1x128x256xi4, group = 128, scale = bf16, zero = bf16>
mega.weight @s_down : !mega.quant<1x256x128xi4, group = 128, scale = bf16, zero = bf16>
mega.block @b(%x: tensor<128xbf16>) -> tensor<128xbf16> {
  %lg = mega.slice %x from 0 : tensor<128xbf16> -> tensor<8xbf16>
  %ids, %w = mega.router %lg softmax scale(1.0)
      : tensor<8xbf16> -> tensor<2xi32>, tensor<2xf32>
  // expected-error@+1 {{'mega.experts' op names 1 shared weights, expected gate, up and down or none}}
  %y = "mega.experts"(%x, %ids, %w) <{gate = @gate, up = @up, down = @down,
      shared_gate = @s_gate}> ({
  ^bb0(%g: f32, %u: f32):
    mega.yield %g
  }) : (tensor<128xbf16>, tensor<2xi32>, tensor<2xf32>) -> tensor<128xbf16>
  mega.return %x : tensor<128xbf16>
}

// -----

mega.weight @gate : !mega.quant<4x128x256xi4, group = 128, scale = bf16, zero = bf16>
mega.weight @down : !mega.quant<4x256x128xi4, group = 128, scale = bf16, zero = bf16>
mega.weight @s_gate : !mega.quant<1x128x256xi4, group = 128, scale = bf16, zero = bf16>
mega.weight @s_up : !mega.quant<1x128x256xi4, group = 128, scale = bf16, zero = bf16>
mega.weight @s_down : !mega.quant<1x256x128xi4, group = 128, scale = bf16, zero = bf16>
mega.block @b(%x: tensor<128xbf16>) -> tensor<128xbf16> {
  %lg = mega.slice %x from 0 : tensor<128xbf16> -> tensor<8xbf16>
  %ids, %w = mega.router %lg softmax scale(1.0)
      : tensor<8xbf16> -> tensor<2xi32>, tensor<2xf32>
  // expected-error@+1 {{'mega.expert_gate_up' op uses weight @up, which no mega.weight declares}}
  %h = mega.expert_gate_up(%x, %ids) gate @gate up @up
      : tensor<128xbf16>, tensor<2xi32> -> tensor<2x256xbf16> {
  ^bb0(%g: f32, %u: f32):
    %h = arith.mulf %g, %u : f32
    mega.yield %h
  }
  mega.return %x : tensor<128xbf16>
}

// -----

mega.weight @gate : !mega.quant<4x128x256xi4, group = 128, scale = bf16, zero = bf16>
mega.weight @up : !mega.quant<4x128x256xi4, group = 128, scale = bf16, zero = bf16>
mega.weight @s_gate : !mega.quant<1x128x256xi4, group = 128, scale = bf16, zero = bf16>
mega.weight @s_up : !mega.quant<1x128x256xi4, group = 128, scale = bf16, zero = bf16>
mega.weight @s_down : !mega.quant<1x256x128xi4, group = 128, scale = bf16, zero = bf16>
mega.block @b(%x: tensor<128xbf16>) -> tensor<128xbf16> {
  %lg = mega.slice %x from 0 : tensor<128xbf16> -> tensor<8xbf16>
  %ids, %w = mega.router %lg softmax scale(1.0)
      : tensor<8xbf16> -> tensor<2xi32>, tensor<2xf32>
  %h = mega.reshape %x : tensor<128xbf16> -> tensor<2x64xbf16>
  // expected-error@+1 {{'mega.expert_down' op uses weight @down, which no mega.weight declares}}
  %y = mega.expert_down(%h, %ids, %w) down @down
      : tensor<2x64xbf16>, tensor<2xi32>, tensor<2xf32> -> tensor<128xbf16>
  mega.return %x : tensor<128xbf16>
}
