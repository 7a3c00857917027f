// SPDX-License-Identifier: Apache-2.0
// RUN: megalith-opt %s --verify-roundtrip | FileCheck %s

mega.state @c : tensor<?x128xbf16>
mega.state @r : tensor<?x16xbf16>
mega.weight @kv_b : !mega.quant<128x128xi4, group = 128, scale = bf16, zero = bf16>
mega.state @heads : tensor<?x2x64xbf16>

// The state's row may have any shape of as many elements.
// CHECK-LABEL: mega.block @append(
mega.block @append(%x: tensor<128xbf16>) -> tensor<128xbf16> {
  // CHECK: %[[P:.*]] = mega.position
  %pos = mega.position
  // CHECK: mega.cache_append %{{.*}}, %[[P]], @c : tensor<128xbf16>
  mega.cache_append %x, %pos, @c : tensor<128xbf16>
  // CHECK: mega.cache_append %{{.*}}, %[[P]], @heads : tensor<128xbf16>
  mega.cache_append %x, %pos, @heads : tensor<128xbf16>
  mega.return %x : tensor<128xbf16>
}

// CHECK-LABEL: mega.block @exact(
mega.block @exact(%x: tensor<96xbf16>) -> tensor<96xbf16> {
  %pos = mega.position
  %q = mega.reshape %x : tensor<96xbf16> -> tensor<2x48xbf16>
  // CHECK: mega.latent_attention %{{.*}}, %{{.*}}, @c, @r, @kv_b scale(1.250000e-01) : tensor<2x48xbf16> -> tensor<2x32xbf16>
  %o = mega.latent_attention %q, %pos, @c, @r, @kv_b scale(0.125)
      : tensor<2x48xbf16> -> tensor<2x32xbf16>
  mega.return %x : tensor<96xbf16>
}

// The relaxation is visible in the text.
// CHECK-LABEL: mega.block @absorbed(
mega.block @absorbed(%x: tensor<96xbf16>) -> tensor<96xbf16> {
  %pos = mega.position
  %q = mega.reshape %x : tensor<96xbf16> -> tensor<2x48xbf16>
  // CHECK: scale(1.250000e-01) absorb : tensor<2x48xbf16> -> tensor<2x32xbf16>
  %o = mega.latent_attention %q, %pos, @c, @r, @kv_b scale(0.125) absorb
      : tensor<2x48xbf16> -> tensor<2x32xbf16>
  mega.return %x : tensor<96xbf16>
}

// CHECK-LABEL: mega.block @thirds(
mega.block @thirds(%x: tensor<96xbf16>) -> tensor<96xbf16> {
  %pos = mega.position
  %q = mega.reshape %x : tensor<96xbf16> -> tensor<2x48xbf16>
  // CHECK: %[[QA:.*]] = mega.latent_query %{{.*}}, @kv_b keys(32) : tensor<2x48xbf16> -> tensor<2x128xf32>
  %qa = mega.latent_query %q, @kv_b keys(32) : tensor<2x48xbf16> -> tensor<2x128xf32>
  // CHECK: %[[M:.*]], %[[S:.*]], %[[C:.*]] = mega.latent_scores %[[QA]], %{{.*}}, %{{.*}}, @c, @r scale(1.250000e-01) : tensor<2x128xf32>, tensor<2x48xbf16> -> tensor<2x4xf32>, tensor<2x4xf32>, tensor<4x2x128xf32>
  %m, %s, %ctx = mega.latent_scores %qa, %q, %pos, @c, @r scale(0.125)
      : tensor<2x128xf32>, tensor<2x48xbf16>
      -> tensor<2x4xf32>, tensor<2x4xf32>, tensor<4x2x128xf32>
  // CHECK: mega.latent_value %[[M]], %[[S]], %[[C]], @kv_b : tensor<2x4xf32>, tensor<2x4xf32>, tensor<4x2x128xf32> -> tensor<2x32xf32>
  %o = mega.latent_value %m, %s, %ctx, @kv_b
      : tensor<2x4xf32>, tensor<2x4xf32>, tensor<4x2x128xf32>
      -> tensor<2x32xf32>
  mega.return %x : tensor<96xbf16>
}
