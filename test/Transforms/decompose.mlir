// SPDX-License-Identifier: Apache-2.0
// RUN: megalith-opt %s -mega-decompose | FileCheck %s

module attributes {mega.target = #mega.target<arch = "sm_90a", ctas = 12, threads = 256, shared_bytes = 131072>} {

mega.weight @router : tensor<4x32xbf16>
mega.weight @gate : !mega.quant<4x32x64xi4, group = 32, scale = bf16, zero = bf16>
mega.weight @up : !mega.quant<4x32x64xi4, group = 32, scale = bf16, zero = bf16>
mega.weight @down : !mega.quant<4x64x32xi4, group = 32, scale = bf16, zero = bf16>
mega.weight @s_gate : !mega.quant<3x32x64xi4, group = 32, scale = bf16, zero = bf16>
mega.weight @s_up : !mega.quant<3x32x64xi4, group = 32, scale = bf16, zero = bf16>
mega.weight @s_down : !mega.quant<3x64x32xi4, group = 32, scale = bf16, zero = bf16>
mega.weight @kv_b : !mega.quant<64x96xi4, group = 32, scale = bf16, zero = bf16>
mega.weight @unread : tensor<32xbf16>

mega.state @latent : tensor<?x64xbf16>
mega.state @rope : tensor<?x16xbf16>
mega.state @conv : tensor<3x32xbf16>

mega.weight @taps : tensor<32x4xbf16>

// The routed rows come first, two of them; no shared expert follows.
// CHECK-LABEL: mega.block @routed(
mega.block @routed(%x: tensor<32xbf16>) -> tensor<32xbf16> {
  %logits = mega.linear %x, @router : tensor<32xbf16> -> tensor<4xbf16>
  // CHECK: %[[IDS:.*]], %[[W:.*]] = mega.router
  %ids, %w = mega.router %logits softmax scale(1.0)
      : tensor<4xbf16> -> tensor<2xi32>, tensor<2xf32>
  // CHECK-NEXT: %[[H:.*]] = mega.expert_gate_up(%{{.*}}, %[[IDS]]) gate @gate up @up
  // CHECK-SAME: -> tensor<2x64xf32> {
  // CHECK-NEXT: ^bb0(%[[G:.*]]: f32, %[[U:.*]]: f32):
  // CHECK-NEXT: %[[A:.*]] = arith.mulf %[[G]], %[[U]] : f32
  // CHECK-NEXT: mega.yield %[[A]]
  // CHECK: %[[Y:.*]] = mega.expert_down(%[[H]], %[[IDS]], %[[W]]) down @down :
  // CHECK-SAME: -> tensor<32xbf16>
  // CHECK-NOT: mega.experts
  %y = mega.experts(%x, %ids, %w) gate @gate up @up down @down
      : tensor<32xbf16>, tensor<2xi32>, tensor<2xf32> -> tensor<32xbf16> {
  ^bb0(%g: f32, %u: f32):
    %a = arith.mulf %g, %u : f32
    mega.yield %a
  }
  // CHECK: mega.return %[[Y]]
  mega.return %y : tensor<32xbf16>
}

// Two routed rows and three shared ones are one hidden matrix of five.
// CHECK-LABEL: mega.block @shared(
mega.block @shared(%x: tensor<32xbf16>) -> tensor<32xbf16> {
  %logits = mega.linear %x, @router : tensor<32xbf16> -> tensor<4xbf16>
  %ids, %w = mega.router %logits softmax scale(1.0)
      : tensor<4xbf16> -> tensor<2xi32>, tensor<2xf32>
  // CHECK: mega.expert_gate_up({{.*}}) gate @gate up @up shared @s_gate, @s_up
  // CHECK-SAME: -> tensor<5x64xf32>
  // CHECK: mega.expert_down({{.*}}) down @down shared @s_down
  // CHECK-SAME: tensor<5x64xf32>
  %y = mega.experts(%x, %ids, %w) gate @gate up @up down @down
      shared @s_gate, @s_up, @s_down
      : tensor<32xbf16>, tensor<2xi32>, tensor<2xf32> -> tensor<32xbf16> {
  ^bb0(%g: f32, %u: f32):
    mega.yield %g
  }
  mega.return %y : tensor<32xbf16>
}

// Two heads of 32 keys and 16 values; a chunk for each of the target's CTAs.
// CHECK-LABEL: mega.block @attention(
// CHECK-SAME: %[[X:.*]]: tensor<96xbf16>
mega.block @attention(%x: tensor<96xbf16>) -> tensor<32xbf16> {
  // CHECK: %[[POS:.*]] = mega.position
  %pos = mega.position
  // CHECK: %[[Q:.*]] = mega.reshape %[[X]]
  %q = mega.reshape %x : tensor<96xbf16> -> tensor<2x48xbf16>
  // CHECK: %[[QA:.*]] = mega.latent_query %[[Q]], @kv_b keys(32)
  // CHECK-SAME: -> tensor<2x64xf32>
  // CHECK: %[[MAX:.*]], %[[SUM:.*]], %[[CTX:.*]] = mega.latent_scores %[[QA]], %[[Q]], %[[POS]], @latent, @rope scale(2.500000e-01)
  // CHECK-SAME: -> tensor<2x12xf32>, tensor<2x12xf32>, tensor<12x2x64xf32>
  // CHECK: mega.latent_value %[[MAX]], %[[SUM]], %[[CTX]], @kv_b
  // CHECK-SAME: -> tensor<2x16xbf16>
  %o = mega.latent_attention %q, %pos, @latent, @rope, @kv_b scale(0.25) absorb
      : tensor<2x48xbf16> -> tensor<2x16xbf16>
  %y = mega.reshape %o : tensor<2x16xbf16> -> tensor<32xbf16>
  mega.return %y : tensor<32xbf16>
}

// What nobody reads goes, an update of state stays.
// CHECK-LABEL: mega.block @dead(
mega.block @dead(%x: tensor<32xbf16>) -> tensor<32xbf16> {
  // CHECK-NOT: mega.rms_norm
  // CHECK-NOT: mega.map
  // CHECK: mega.short_conv
  %n = mega.rms_norm %x, @unread eps(1.0e-6) : tensor<32xbf16> -> tensor<32xbf16>
  %m = mega.map(%a = %n) : (tensor<32xbf16>) -> tensor<32xbf16> {
    mega.yield %a
  }
  %c = mega.short_conv %x, @taps, @conv : tensor<32xbf16> -> tensor<32xbf16>
  mega.return %x : tensor<32xbf16>
}

}
