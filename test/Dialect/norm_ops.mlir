// SPDX-License-Identifier: Apache-2.0
// RUN: megalith-opt %s --verify-roundtrip | FileCheck %s

mega.weight @w : tensor<64xbf16>
mega.weight @head_w : tensor<16xf32>

// CHECK-LABEL: mega.block @plain(
mega.block @plain(%x: tensor<64xbf16>) -> tensor<64xbf16> {
  // CHECK: mega.rms_norm %{{.*}}, @w eps(9.99{{.*}}E-7) : tensor<64xbf16> -> tensor<64xbf16>
  %y = mega.rms_norm %x, @w eps(1.0e-6) : tensor<64xbf16> -> tensor<64xbf16>
  mega.return %y : tensor<64xbf16>
}

// CHECK-LABEL: mega.block @unit_offset(
mega.block @unit_offset(%x: tensor<64xbf16>) -> tensor<64xbf16> {
  // CHECK: mega.rms_norm %{{.*}}, @w eps({{.*}}) unit_offset : tensor<64xbf16> -> tensor<64xbf16>
  %y = mega.rms_norm %x, @w eps(1.0e-6) unit_offset
      : tensor<64xbf16> -> tensor<64xbf16>
  mega.return %y : tensor<64xbf16>
}

// Each row of the last dimension is normed alone; f32 keeps the result exact.
// CHECK-LABEL: mega.block @per_head(
mega.block @per_head(%x: tensor<64xbf16>) -> tensor<64xbf16> {
  %h = mega.reshape %x : tensor<64xbf16> -> tensor<4x16xbf16>
  // CHECK: mega.rms_norm %{{.*}}, @head_w eps(0.000000e+00) : tensor<4x16xbf16> -> tensor<4x16xf32>
  %n = mega.rms_norm %h, @head_w eps(0.0)
      : tensor<4x16xbf16> -> tensor<4x16xf32>
  mega.return %x : tensor<64xbf16>
}
