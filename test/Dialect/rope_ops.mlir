// SPDX-License-Identifier: Apache-2.0
// RUN: megalith-opt %s --verify-roundtrip | FileCheck %s

// CHECK-LABEL: mega.block @none(
mega.block @none(%x: tensor<64xbf16>) -> tensor<64xbf16> {
  // CHECK: %[[P:.*]] = mega.position
  %pos = mega.position
  // CHECK: mega.rope %{{.*}}, %[[P]] none range(0, 64) theta(1.000000e+04) : tensor<64xbf16> -> tensor<64xbf16>
  %y = mega.rope %x, %pos none range(0, 64) theta(10000.0)
      : tensor<64xbf16> -> tensor<64xbf16>
  mega.return %y : tensor<64xbf16>
}

// CHECK-LABEL: mega.block @half(
mega.block @half(%x: tensor<64xbf16>) -> tensor<64xbf16> {
  // CHECK: %[[P:.*]] = mega.position
  %pos = mega.position
  // CHECK: mega.rope %{{.*}}, %[[P]] half range(0, 64) theta(1.000000e+04) : tensor<64xbf16> -> tensor<64xbf16>
  %y = mega.rope %x, %pos half range(0, 64) theta(10000.0)
      : tensor<64xbf16> -> tensor<64xbf16>
  mega.return %y : tensor<64xbf16>
}

// CHECK-LABEL: mega.block @interleaved(
mega.block @interleaved(%x: tensor<64xbf16>) -> tensor<64xbf16> {
  // CHECK: %[[P:.*]] = mega.position
  %pos = mega.position
  // CHECK: mega.rope %{{.*}}, %[[P]] interleaved range(0, 64) theta(1.000000e+04) : tensor<64xbf16> -> tensor<64xbf16>
  %y = mega.rope %x, %pos interleaved range(0, 64) theta(10000.0)
      : tensor<64xbf16> -> tensor<64xbf16>
  mega.return %y : tensor<64xbf16>
}

// Rotation of a part of each head; the rest passes through.
// CHECK-LABEL: mega.block @partial_per_head(
mega.block @partial_per_head(%x: tensor<64xbf16>) -> tensor<64xbf16> {
  %pos = mega.position
  %h = mega.reshape %x : tensor<64xbf16> -> tensor<4x16xbf16>
  // CHECK: mega.rope %{{.*}}, %{{.*}} half range(8, 8) theta(5.000000e+05) : tensor<4x16xbf16> -> tensor<4x16xf32>
  %y = mega.rope %h, %pos half range(8, 8) theta(500000.0)
      : tensor<4x16xbf16> -> tensor<4x16xf32>
  mega.return %x : tensor<64xbf16>
}
