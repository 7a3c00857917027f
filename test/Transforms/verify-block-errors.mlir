// SPDX-License-Identifier: Apache-2.0
// RUN: megalith-opt %s -mega-verify-block -split-input-file -verify-diagnostics

// expected-error @below {{module has no 'mega.target' attribute, expected a #mega.target (see megalithc --arch)}}
module {
mega.block @b(%x: tensor<8xbf16>) -> tensor<8xbf16> {
  mega.return %x : tensor<8xbf16>
}
}

// -----

// expected-error @below {{module has 0 mega.block ops, expected 1}}
module attributes {mega.target = #mega.target<arch = "sm_90a", ctas = 4, threads = 256, shared_bytes = 131072>} {
}

// -----

// expected-error @below {{module has 2 mega.block ops, expected 1}}
module attributes {mega.target = #mega.target<arch = "sm_90a", ctas = 4, threads = 256, shared_bytes = 131072>} {
mega.block @a(%x: tensor<8xbf16>) -> tensor<8xbf16> {
  mega.return %x : tensor<8xbf16>
}
mega.block @b(%x: tensor<8xbf16>) -> tensor<8xbf16> {
  mega.return %x : tensor<8xbf16>
}
}

// -----

module attributes {mega.target = #mega.target<arch = "sm_90a", ctas = 4, threads = 256, shared_bytes = 131072>} {
// expected-error @below {{'mega.program' op stands beside the mega.block, expected only mega.weight and mega.state there}}
mega.program @p(%in, %out) : !mega.buffer<8xbf16>, !mega.buffer<8xbf16> {}
mega.block @b(%x: tensor<8xbf16>) -> tensor<8xbf16> {
  mega.return %x : tensor<8xbf16>
}
}

// -----

module attributes {mega.target = #mega.target<arch = "sm_90a", ctas = 4, threads = 256, shared_bytes = 131072>} {
mega.weight @kv_b : !mega.quant<64x96xi4, group = 32, scale = bf16, zero = bf16>
mega.state @latent : tensor<?x64xbf16>
mega.state @rope : tensor<?x16xbf16>
mega.block @b(%x: tensor<96xbf16>) -> tensor<32xbf16> {
  %pos = mega.position
  %q = mega.reshape %x : tensor<96xbf16> -> tensor<2x48xbf16>
  // expected-error @below {{'mega.latent_attention' op is not marked 'absorb', expected the relaxation: the compiler has no lowering that keeps the rounding of each cached row's keys and values}}
  %o = mega.latent_attention %q, %pos, @latent, @rope, @kv_b scale(0.25)
      : tensor<2x48xbf16> -> tensor<2x16xbf16>
  %y = mega.reshape %o : tensor<2x16xbf16> -> tensor<32xbf16>
  mega.return %y : tensor<32xbf16>
}
}

// -----

module attributes {mega.target = #mega.target<arch = "sm_90a", ctas = 4, threads = 256, shared_bytes = 131072>} {
mega.block @b(%x: tensor<8xbf16>) -> tensor<8xbf16> {
  // expected-error @below {{'mega.elementwise' op belongs to level 1, expected level-0 ops only}}
  %y = mega.elementwise %x : tensor<8xbf16> -> tensor<8xbf16>
  mega.return %y : tensor<8xbf16>
}
}

// -----

module attributes {mega.target = #mega.target<arch = "sm_90a", ctas = 4, threads = 256, shared_bytes = 131072>} {
mega.block @b(%x: tensor<8xbf16>) -> tensor<8xbf16> {
  // expected-error @below {{'mega.alloc' op belongs to level 1, expected level-0 ops only}}
  %a = mega.alloc "a" : !mega.buffer<8xbf16>
  mega.return %x : tensor<8xbf16>
}
}

// -----

// A constant is no position: the kernel knows one position only.
module attributes {mega.target = #mega.target<arch = "sm_90a", ctas = 4, threads = 256, shared_bytes = 131072>} {
mega.block @b(%x: tensor<8xbf16>) -> tensor<8xbf16> {
  // expected-error @below {{'arith.constant' op stands in a mega.block, expected mega ops only}}
  %seven = arith.constant 7 : index
  %y = mega.rope %x, %seven half range(0, 8) theta(10000.0) : tensor<8xbf16> -> tensor<8xbf16>
  mega.return %y : tensor<8xbf16>
}
}

// -----

module attributes {mega.target = #mega.target<arch = "sm_90a", ctas = 4, threads = 256, shared_bytes = 131072>} {
mega.block @b(%x: tensor<1xbf16>) -> tensor<1xbf16> {
  // expected-error @below {{'mega.reshape' op has a result of type 'tensor<bf16>', expected a tensor of rank 1 or more}}
  %s = mega.reshape %x : tensor<1xbf16> -> tensor<bf16>
  %y = mega.reshape %s : tensor<bf16> -> tensor<1xbf16>
  mega.return %y : tensor<1xbf16>
}
}

// -----

module attributes {mega.target = #mega.target<arch = "sm_90a", ctas = 4, threads = 256, shared_bytes = 131072>} {
mega.weight @w : tensor<4x8xbf16>
mega.block @b(%x: tensor<8xf32>) -> tensor<4xbf16> {
  // expected-error @below {{'mega.linear' op multiplies 'tensor<8xf32>' by @w of type 'tensor<4x8xbf16>', expected bf16 on both sides and a multiple of 8 inputs}}
  %y = mega.linear %x, @w : tensor<8xf32> -> tensor<4xbf16>
  mega.return %y : tensor<4xbf16>
}
}

// -----

module attributes {mega.target = #mega.target<arch = "sm_90a", ctas = 4, threads = 256, shared_bytes = 131072>} {
mega.weight @w : tensor<4x12xbf16>
mega.block @b(%x: tensor<12xbf16>) -> tensor<4xbf16> {
  // expected-error @below {{'mega.linear' op multiplies 'tensor<12xbf16>' by @w of type 'tensor<4x12xbf16>', expected bf16 on both sides and a multiple of 8 inputs}}
  %y = mega.linear %x, @w : tensor<12xbf16> -> tensor<4xbf16>
  mega.return %y : tensor<4xbf16>
}
}

// -----

module attributes {mega.target = #mega.target<arch = "sm_90a", ctas = 4, threads = 256, shared_bytes = 131072>} {
mega.weight @w : tensor<8x4xf32>
mega.state @s : tensor<3x8xbf16>
mega.block @b(%x: tensor<8xbf16>) -> tensor<8xbf16> {
  // expected-error @below {{'mega.short_conv' op convolves 'tensor<8xbf16>' with @w of type 'tensor<8x4xf32>', expected bf16 on both sides}}
  %y = mega.short_conv %x, @w, @s : tensor<8xbf16> -> tensor<8xbf16>
  mega.return %y : tensor<8xbf16>
}
}

// -----

module attributes {mega.target = #mega.target<arch = "sm_90a", ctas = 4, threads = 256, shared_bytes = 131072>} {
mega.weight @router : tensor<4x32xbf16>
mega.weight @g : !mega.quant<4x32x32xi4, group = 32, scale = bf16, zero = bf16>
mega.weight @d : !mega.quant<4x32x32xi4, group = 32, scale = bf16, zero = bf16>
mega.block @b(%x: tensor<32xbf16>) -> tensor<32xbf16> {
  %logits = mega.linear %x, @router : tensor<32xbf16> -> tensor<4xbf16>
  %ids, %w = mega.router %logits softmax scale(1.0)
      : tensor<4xbf16> -> tensor<2xi32>, tensor<2xf32>
  %f = mega.map(%a = %x) : (tensor<32xbf16>) -> tensor<32xf32> {
    mega.yield %a
  }
  // expected-error @below {{'mega.experts' op reads 'tensor<32xf32>', expected bf16}}
  %y = mega.experts(%f, %ids, %w) gate @g up @g down @d
      : tensor<32xf32>, tensor<2xi32>, tensor<2xf32> -> tensor<32xbf16> {
  ^bb0(%g: f32, %u: f32):
    mega.yield %g
  }
  mega.return %y : tensor<32xbf16>
}
}

// -----

module attributes {mega.target = #mega.target<arch = "sm_90a", ctas = 4, threads = 256, shared_bytes = 131072>} {
mega.weight @router : tensor<4x32xbf16>
mega.weight @g : !mega.quant<4x32x64xi4, group = 32, scale = bf16, zero = bf16>
mega.weight @d : !mega.quant<4x64x32xi4, group = 32, scale = bf16, zero = bf16>
mega.weight @s : !mega.quant<1x32x64xi4, group = 32, scale = bf16, zero = bf16>
mega.weight @sd : !mega.quant<1x64x32xi4, group = 64, scale = bf16, zero = bf16>
mega.block @b(%x: tensor<32xbf16>) -> tensor<32xbf16> {
  %logits = mega.linear %x, @router : tensor<32xbf16> -> tensor<4xbf16>
  %ids, %w = mega.router %logits softmax scale(1.0)
      : tensor<4xbf16> -> tensor<2xi32>, tensor<2xf32>
  // expected-error @below {{'mega.experts' op has shared down '!mega.quant<1x64x32xi4, group = 64, scale = bf16, zero = bf16>' beside down '!mega.quant<4x64x32xi4, group = 32, scale = bf16, zero = bf16>', expected one group}}
  %y = mega.experts(%x, %ids, %w) gate @g up @g down @d shared @s, @s, @sd
      : tensor<32xbf16>, tensor<2xi32>, tensor<2xf32> -> tensor<32xbf16> {
  ^bb0(%g: f32, %u: f32):
    mega.yield %g
  }
  mega.return %y : tensor<32xbf16>
}
}

// -----

module attributes {mega.target = #mega.target<arch = "sm_90a", ctas = 4, threads = 256, shared_bytes = 131072>} {
mega.weight @kv_b : !mega.quant<64x80xi4, group = 32, scale = bf16, zero = bf16>
mega.state @latent : tensor<?x64xbf16>
mega.state @rope : tensor<?x16xbf16>
mega.block @b(%x: tensor<80xbf16>) -> tensor<32xbf16> {
  %pos = mega.position
  %q = mega.reshape %x : tensor<80xbf16> -> tensor<2x40xbf16>
  // expected-error @below {{'mega.latent_attention' op has 24 key and 16 value elements a head and queries of type 'tensor<2x40xbf16>', expected multiples of 16 and bf16}}
  %o = mega.latent_attention %q, %pos, @latent, @rope, @kv_b scale(0.25) absorb
      : tensor<2x40xbf16> -> tensor<2x16xbf16>
  %y = mega.reshape %o : tensor<2x16xbf16> -> tensor<32xbf16>
  mega.return %y : tensor<32xbf16>
}
}

// -----

// Tiles of one stage may run in any order, and so may two updates in one.
module attributes {mega.target = #mega.target<arch = "sm_90a", ctas = 4, threads = 256, shared_bytes = 131072>} {
mega.weight @w : tensor<8x4xbf16>
mega.state @s : tensor<3x8xbf16>
mega.block @b(%x: tensor<8xbf16>) -> tensor<8xbf16> {
  // expected-note @below {{the first update}}
  %a = mega.short_conv %x, @w, @s : tensor<8xbf16> -> tensor<8xbf16>
  // expected-error @below {{'mega.short_conv' op updates state @s again, expected one update a step}}
  %y = mega.short_conv %a, @w, @s : tensor<8xbf16> -> tensor<8xbf16>
  mega.return %y : tensor<8xbf16>
}
}

// -----

// The caches must hold this step's row when attention reads them.
module attributes {mega.target = #mega.target<arch = "sm_90a", ctas = 4, threads = 256, shared_bytes = 131072>} {
mega.weight @kv_b : !mega.quant<64x96xi4, group = 32, scale = bf16, zero = bf16>
mega.state @latent : tensor<?x64xbf16>
mega.state @rope : tensor<?x16xbf16>
mega.block @b(%x: tensor<96xbf16>) -> tensor<32xbf16> {
  %pos = mega.position
  %q = mega.reshape %x : tensor<96xbf16> -> tensor<2x48xbf16>
  %l = mega.slice %x from 0 : tensor<96xbf16> -> tensor<64xbf16>
  mega.cache_append %l, %pos, @latent : tensor<64xbf16>
  // expected-error @below {{'mega.latent_attention' op reads cache @rope, expected an earlier mega.cache_append of this step's row}}
  %o = mega.latent_attention %q, %pos, @latent, @rope, @kv_b scale(0.25) absorb
      : tensor<2x48xbf16> -> tensor<2x16xbf16>
  %r = mega.slice %x from 64 : tensor<96xbf16> -> tensor<16xbf16>
  mega.cache_append %r, %pos, @rope : tensor<16xbf16>
  %y = mega.reshape %o : tensor<2x16xbf16> -> tensor<32xbf16>
  mega.return %y : tensor<32xbf16>
}
}

// -----

// One copy of a weight cannot be packed in two ways.
module attributes {mega.target = #mega.target<arch = "sm_90a", ctas = 4, threads = 256, shared_bytes = 131072>} {
mega.weight @router : tensor<4x32xbf16>
mega.weight @g : !mega.quant<4x32x32xi4, group = 32, scale = bf16, zero = bf16>
mega.weight @u : !mega.quant<4x32x32xi4, group = 32, scale = bf16, zero = bf16>
mega.block @b(%x: tensor<32xbf16>) -> tensor<32xbf16> {
  %logits = mega.linear %x, @router : tensor<32xbf16> -> tensor<4xbf16>
  %ids, %w = mega.router %logits softmax scale(1.0)
      : tensor<4xbf16> -> tensor<2xi32>, tensor<2xf32>
  // expected-error @below {{'mega.experts' op packs weight @g with [@g], expected [@g, @u] as another op does}}
  // expected-note @below {{the other op}}
  %y = mega.experts(%x, %ids, %w) gate @g up @u down @g
      : tensor<32xbf16>, tensor<2xi32>, tensor<2xf32> -> tensor<32xbf16> {
  ^bb0(%g: f32, %u: f32):
    mega.yield %g
  }
  mega.return %y : tensor<32xbf16>
}
}
