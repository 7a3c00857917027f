// SPDX-License-Identifier: Apache-2.0
// RUN: megalith-opt %s --split-input-file --verify-diagnostics

mega.block @b(%x: tensor<128xbf16>) -> tensor<128xbf16> {
  %pos = mega.position
  // expected-error@+1 {{'mega.cache_append' op uses state @c, which no mega.state declares}}
  mega.cache_append %x, %pos, @c : tensor<128xbf16>
  mega.return %x : tensor<128xbf16>
}

// -----

mega.state @c : tensor<4x128xbf16>
mega.block @b(%x: tensor<128xbf16>) -> tensor<128xbf16> {
  %pos = mega.position
  // expected-error@+1 {{'mega.cache_append' op appends to state @c of type 'tensor<4x128xbf16>', expected a cache with a dynamic leading dimension}}
  mega.cache_append %x, %pos, @c : tensor<128xbf16>
  mega.return %x : tensor<128xbf16>
}

// -----

mega.state @c : tensor<?x128xf32>
mega.block @b(%x: tensor<128xbf16>) -> tensor<128xbf16> {
  %pos = mega.position
  // expected-error@+1 {{'mega.cache_append' op appends 'tensor<128xbf16>' to state @c of type 'tensor<?x128xf32>', expected one element type}}
  mega.cache_append %x, %pos, @c : tensor<128xbf16>
  mega.return %x : tensor<128xbf16>
}

// -----

mega.state @c : tensor<?x64xbf16>
mega.block @b(%x: tensor<128xbf16>) -> tensor<128xbf16> {
  %pos = mega.position
  // expected-error@+1 {{'mega.cache_append' op appended value has 128 elements, expected 64}}
  mega.cache_append %x, %pos, @c : tensor<128xbf16>
  mega.return %x : tensor<128xbf16>
}

// -----

mega.state @c : tensor<?x128xbf16>
mega.state @r : tensor<?x16xbf16>
mega.weight @kv_b : !mega.quant<128x128xi4, group = 128, scale = bf16, zero = bf16>
mega.block @b(%x: tensor<96xbf16>) -> tensor<96xbf16> {
  %pos = mega.position
  %q = mega.reshape %x : tensor<96xbf16> -> tensor<96xbf16>
  // expected-error@+1 {{'mega.latent_attention' op maps 'tensor<96xbf16>' to 'tensor<2x32xbf16>', expected rank-2 tensors with one number of heads}}
  %o = mega.latent_attention %q, %pos, @c, @r, @kv_b scale(0.125)
      : tensor<96xbf16> -> tensor<2x32xbf16>
  mega.return %x : tensor<96xbf16>
}

// -----

mega.state @c : tensor<?x128xbf16>
mega.state @r : tensor<?x16xbf16>
mega.weight @kv_b : !mega.quant<128x128xi4, group = 128, scale = bf16, zero = bf16>
mega.block @b(%x: tensor<96xbf16>) -> tensor<96xbf16> {
  %pos = mega.position
  %q = mega.reshape %x : tensor<96xbf16> -> tensor<2x48xbf16>
  // expected-error@+1 {{'mega.latent_attention' op maps 'tensor<2x48xbf16>' to 'tensor<4x32xbf16>', expected rank-2 tensors with one number of heads}}
  %o = mega.latent_attention %q, %pos, @c, @r, @kv_b scale(0.125)
      : tensor<2x48xbf16> -> tensor<4x32xbf16>
  mega.return %x : tensor<96xbf16>
}

// -----

mega.state @r : tensor<?x16xbf16>
mega.weight @kv_b : !mega.quant<128x128xi4, group = 128, scale = bf16, zero = bf16>
mega.block @b(%x: tensor<96xbf16>) -> tensor<96xbf16> {
  %pos = mega.position
  %q = mega.reshape %x : tensor<96xbf16> -> tensor<2x48xbf16>
  // expected-error@+1 {{'mega.latent_attention' op uses state @c, which no mega.state declares}}
  %o = mega.latent_attention %q, %pos, @c, @r, @kv_b scale(0.125)
      : tensor<2x48xbf16> -> tensor<2x32xbf16>
  mega.return %x : tensor<96xbf16>
}

// -----

mega.state @c : tensor<?x128xbf16>
mega.weight @kv_b : !mega.quant<128x128xi4, group = 128, scale = bf16, zero = bf16>
mega.block @b(%x: tensor<96xbf16>) -> tensor<96xbf16> {
  %pos = mega.position
  %q = mega.reshape %x : tensor<96xbf16> -> tensor<2x48xbf16>
  // expected-error@+1 {{'mega.latent_attention' op uses state @r, which no mega.state declares}}
  %o = mega.latent_attention %q, %pos, @c, @r, @kv_b scale(0.125)
      : tensor<2x48xbf16> -> tensor<2x32xbf16>
  mega.return %x : tensor<96xbf16>
}

// -----

mega.state @c : tensor<?x128xbf16>
mega.state @r : tensor<?x16xbf16>
mega.block @b(%x: tensor<96xbf16>) -> tensor<96xbf16> {
  %pos = mega.position
  %q = mega.reshape %x : tensor<96xbf16> -> tensor<2x48xbf16>
  // expected-error@+1 {{'mega.latent_attention' op uses weight @kv_b, which no mega.weight declares}}
  %o = mega.latent_attention %q, %pos, @c, @r, @kv_b scale(0.125)
      : tensor<2x48xbf16> -> tensor<2x32xbf16>
  mega.return %x : tensor<96xbf16>
}

// -----

mega.state @c : tensor<?x128xbf16>
mega.state @r : tensor<?x16xbf16>
mega.weight @kv_b : tensor<128x128xbf16>
mega.block @b(%x: tensor<96xbf16>) -> tensor<96xbf16> {
  %pos = mega.position
  %q = mega.reshape %x : tensor<96xbf16> -> tensor<2x48xbf16>
  // expected-error@+1 {{'mega.latent_attention' op uses weight @kv_b of type 'tensor<128x128xbf16>', expected a !mega.quant}}
  %o = mega.latent_attention %q, %pos, @c, @r, @kv_b scale(0.125)
      : tensor<2x48xbf16> -> tensor<2x32xbf16>
  mega.return %x : tensor<96xbf16>
}

// -----

mega.state @c : tensor<64x128xbf16>
mega.state @r : tensor<?x16xbf16>
mega.weight @kv_b : !mega.quant<128x128xi4, group = 128, scale = bf16, zero = bf16>
mega.block @b(%x: tensor<96xbf16>) -> tensor<96xbf16> {
  %pos = mega.position
  %q = mega.reshape %x : tensor<96xbf16> -> tensor<2x48xbf16>
  // expected-error@+1 {{'mega.latent_attention' op uses state @c of type 'tensor<64x128xbf16>', expected tensor<?xNxbf16>}}
  %o = mega.latent_attention %q, %pos, @c, @r, @kv_b scale(0.125)
      : tensor<2x48xbf16> -> tensor<2x32xbf16>
  mega.return %x : tensor<96xbf16>
}

// -----

mega.state @c : tensor<?x128xf32>
mega.state @r : tensor<?x16xbf16>
mega.weight @kv_b : !mega.quant<128x128xi4, group = 128, scale = bf16, zero = bf16>
mega.block @b(%x: tensor<96xbf16>) -> tensor<96xbf16> {
  %pos = mega.position
  %q = mega.reshape %x : tensor<96xbf16> -> tensor<2x48xbf16>
  // expected-error@+1 {{'mega.latent_attention' op uses state @c of type 'tensor<?x128xf32>', expected tensor<?xNxbf16>}}
  %o = mega.latent_attention %q, %pos, @c, @r, @kv_b scale(0.125)
      : tensor<2x48xbf16> -> tensor<2x32xbf16>
  mega.return %x : tensor<96xbf16>
}

// -----

mega.state @c : tensor<?x128xbf16>
mega.state @r : tensor<?x1x16xbf16>
mega.weight @kv_b : !mega.quant<128x128xi4, group = 128, scale = bf16, zero = bf16>
mega.block @b(%x: tensor<96xbf16>) -> tensor<96xbf16> {
  %pos = mega.position
  %q = mega.reshape %x : tensor<96xbf16> -> tensor<2x48xbf16>
  // expected-error@+1 {{'mega.latent_attention' op uses state @r of type 'tensor<?x1x16xbf16>', expected tensor<?xNxbf16>}}
  %o = mega.latent_attention %q, %pos, @c, @r, @kv_b scale(0.125)
      : tensor<2x48xbf16> -> tensor<2x32xbf16>
  mega.return %x : tensor<96xbf16>
}

// -----

mega.state @c : tensor<?x128xbf16>
mega.state @r : tensor<?x48xbf16>
mega.weight @kv_b : !mega.quant<128x128xi4, group = 128, scale = bf16, zero = bf16>
mega.block @b(%x: tensor<96xbf16>) -> tensor<96xbf16> {
  %pos = mega.position
  %q = mega.reshape %x : tensor<96xbf16> -> tensor<2x48xbf16>
  // expected-error@+1 {{'mega.latent_attention' op has queries of 48 elements, expected more than the rope cache's width 48}}
  %o = mega.latent_attention %q, %pos, @c, @r, @kv_b scale(0.125)
      : tensor<2x48xbf16> -> tensor<2x32xbf16>
  mega.return %x : tensor<96xbf16>
}

// -----

mega.state @c : tensor<?x128xbf16>
mega.state @r : tensor<?x16xbf16>
mega.weight @kv_b : !mega.quant<2x128x128xi4, group = 128, scale = bf16, zero = bf16>
mega.block @b(%x: tensor<96xbf16>) -> tensor<96xbf16> {
  %pos = mega.position
  %q = mega.reshape %x : tensor<96xbf16> -> tensor<2x48xbf16>
  // expected-error@+1 {{'mega.latent_attention' op uses weight @kv_b of type '!mega.quant<2x128x128xi4, group = 128, scale = bf16, zero = bf16>', expected a single matrix}}
  %o = mega.latent_attention %q, %pos, @c, @r, @kv_b scale(0.125)
      : tensor<2x48xbf16> -> tensor<2x32xbf16>
  mega.return %x : tensor<96xbf16>
}

// -----

mega.state @c : tensor<?x128xbf16>
mega.state @r : tensor<?x16xbf16>
mega.weight @kv_b : !mega.quant<256x128xi4, group = 128, scale = bf16, zero = bf16>
mega.block @b(%x: tensor<96xbf16>) -> tensor<96xbf16> {
  %pos = mega.position
  %q = mega.reshape %x : tensor<96xbf16> -> tensor<2x48xbf16>
  // expected-error@+1 {{'mega.latent_attention' op weight @kv_b has 256 inputs, expected 128}}
  %o = mega.latent_attention %q, %pos, @c, @r, @kv_b scale(0.125)
      : tensor<2x48xbf16> -> tensor<2x32xbf16>
  mega.return %x : tensor<96xbf16>
}

// -----

mega.state @c : tensor<?x128xbf16>
mega.state @r : tensor<?x16xbf16>
mega.weight @kv_b : !mega.quant<128x64xi4, group = 128, scale = bf16, zero = bf16>
mega.block @b(%x: tensor<96xbf16>) -> tensor<96xbf16> {
  %pos = mega.position
  %q = mega.reshape %x : tensor<96xbf16> -> tensor<2x48xbf16>
  // expected-error@+1 {{'mega.latent_attention' op weight @kv_b has 64 outputs, expected 128}}
  %o = mega.latent_attention %q, %pos, @c, @r, @kv_b scale(0.125)
      : tensor<2x48xbf16> -> tensor<2x32xbf16>
  mega.return %x : tensor<96xbf16>
}

// -----

mega.state @c : tensor<?x128xbf16>
mega.state @r : tensor<?x16xbf16>
mega.block @b(%x: tensor<96xbf16>) -> tensor<96xbf16> {
  %pos = mega.position
  %q = mega.reshape %x : tensor<96xbf16> -> tensor<2x48xbf16>
  // expected-error@+1 {{'mega.latent_query' op uses weight @kv_b, which no mega.weight declares}}
  %qa = mega.latent_query %q, @kv_b keys(32) : tensor<2x48xbf16> -> tensor<2x128xf32>
  mega.return %x : tensor<96xbf16>
}

// -----

mega.state @r : tensor<?x16xbf16>
mega.weight @kv_b : !mega.quant<128x128xi4, group = 128, scale = bf16, zero = bf16>
mega.block @b(%x: tensor<96xbf16>) -> tensor<96xbf16> {
  %pos = mega.position
  %q = mega.reshape %x : tensor<96xbf16> -> tensor<2x48xbf16>
  %qa = mega.latent_query %q, @kv_b keys(32) : tensor<2x48xbf16> -> tensor<2x128xf32>
  // expected-error@+1 {{'mega.latent_scores' op uses state @c, which no mega.state declares}}
  %m, %s, %ctx = mega.latent_scores %qa, %q, %pos, @c, @r scale(0.125)
      : tensor<2x128xf32>, tensor<2x48xbf16>
      -> tensor<2x4xf32>, tensor<2x4xf32>, tensor<4x2x128xf32>
  mega.return %x : tensor<96xbf16>
}

// -----

mega.state @c : tensor<?x128xbf16>
mega.state @r : tensor<?x16xbf16>
mega.block @b(%x: tensor<96xbf16>) -> tensor<96xbf16> {
  %pos = mega.position
  %q = mega.reshape %x : tensor<96xbf16> -> tensor<2x48xbf16>
  %m = mega.slice %q from 0 : tensor<2x48xbf16> -> tensor<2x2xbf16>
  %ctx = mega.reshape %q : tensor<2x48xbf16> -> tensor<2x2x24xbf16>
  // expected-error@+1 {{'mega.latent_value' op uses weight @kv_b, which no mega.weight declares}}
  %o = mega.latent_value %m, %m, %ctx, @kv_b
      : tensor<2x2xbf16>, tensor<2x2xbf16>, tensor<2x2x24xbf16>
      -> tensor<2x32xf32>
  mega.return %x : tensor<96xbf16>
}
