// SPDX-License-Identifier: Apache-2.0
// RUN: megalith-opt %s --verify-roundtrip | FileCheck %s

mega.weight @gate : !mega.quant<4x128x256xi4, group = 128, scale = bf16, zero = bf16>
mega.weight @up : !mega.quant<4x128x256xi4, group = 128, scale = bf16, zero = bf16>
mega.weight @down : !mega.quant<4x256x128xi4, group = 128, scale = bf16, zero = bf16>
mega.weight @s_gate : !mega.quant<1x128x256xi4, group = 128, scale = bf16, zero = bf16>
mega.weight @s_up : !mega.quant<1x128x256xi4, group = 128, scale = bf16, zero = bf16>
mega.weight @s_down : !mega.quant<1x256x128xi4, group = 128, scale = bf16, zero = bf16>

// CHECK-LABEL: mega.block @routed_only(
mega.block @routed_only(%x: tensor<128xbf16>) -> tensor<128xbf16> {
  %lg = mega.slice %x from 0 : tensor<128xbf16> -> tensor<4xbf16>
  %ids, %w = mega.router %lg softmax scale(1.0)
      : tensor<4xbf16> -> tensor<2xi32>, tensor<2xf32>
  // CHECK: mega.experts(%{{.*}}, %{{.*}}, %{{.*}}) gate @gate up @up down @down : tensor<128xbf16>, tensor<2xi32>, tensor<2xf32> -> tensor<128xbf16> {
  // CHECK-NEXT: ^bb0(%[[G:.*]]: f32, %[[U:.*]]: f32):
  // CHECK-NEXT: %[[H:.*]] = arith.mulf %[[G]], %[[U]] : f32
  // CHECK-NEXT: mega.yield %[[H]]
  %y = mega.experts(%x, %ids, %w) gate @gate up @up down @down
      : tensor<128xbf16>, tensor<2xi32>, tensor<2xf32> -> tensor<128xbf16> {
  ^bb0(%g: f32, %u: f32):
    %h = arith.mulf %g, %u : f32
    mega.yield %h
  }
  mega.return %y : tensor<128xbf16>
}

// CHECK-LABEL: mega.block @with_shared(
mega.block @with_shared(%x: tensor<128xbf16>) -> tensor<128xbf16> {
  %lg = mega.slice %x from 0 : tensor<128xbf16> -> tensor<4xbf16>
  %ids, %w = mega.router %lg softmax scale(1.0)
      : tensor<4xbf16> -> tensor<2xi32>, tensor<2xf32>
  // CHECK: down @down shared @s_gate, @s_up, @s_down :
  %y = mega.experts(%x, %ids, %w) gate @gate up @up down @down
      shared @s_gate, @s_up, @s_down
      : tensor<128xbf16>, tensor<2xi32>, tensor<2xf32> -> tensor<128xbf16> {
  ^bb0(%g: f32, %u: f32):
    %h = arith.mulf %g, %u : f32
    mega.yield %h
  }
  mega.return %y : tensor<128xbf16>
}

// CHECK-LABEL: mega.block @halves(
mega.block @halves(%x: tensor<128xbf16>) -> tensor<128xbf16> {
  %lg = mega.slice %x from 0 : tensor<128xbf16> -> tensor<4xbf16>
  %ids, %w = mega.router %lg softmax scale(1.0)
      : tensor<4xbf16> -> tensor<2xi32>, tensor<2xf32>
  // CHECK: %[[H:.*]] = mega.expert_gate_up(%{{.*}}, %{{.*}}) gate @gate up @up shared @s_gate, @s_up : tensor<128xbf16>, tensor<2xi32> -> tensor<3x256xbf16> {
  %h = mega.expert_gate_up(%x, %ids) gate @gate up @up shared @s_gate, @s_up
      : tensor<128xbf16>, tensor<2xi32> -> tensor<3x256xbf16> {
  ^bb0(%g: f32, %u: f32):
    %h = arith.mulf %g, %u : f32
    mega.yield %h
  }
  // CHECK: mega.expert_down(%[[H]], %{{.*}}, %{{.*}}) down @down shared @s_down : tensor<3x256xbf16>, tensor<2xi32>, tensor<2xf32> -> tensor<128xbf16>
  %y = mega.expert_down(%h, %ids, %w) down @down shared @s_down
      : tensor<3x256xbf16>, tensor<2xi32>, tensor<2xf32> -> tensor<128xbf16>
  mega.return %y : tensor<128xbf16>
}
