// SPDX-License-Identifier: Apache-2.0
// RUN: megalith-opt %s --verify-roundtrip | FileCheck %s

mega.weight @bias : tensor<64xf32>

// CHECK-LABEL: mega.block @softmax(
mega.block @softmax(%x: tensor<64xbf16>) -> tensor<64xbf16> {
  // CHECK: %[[IDS:.*]], %[[W:.*]] = mega.router %{{.*}} softmax scale(1.000000e+00) : tensor<64xbf16> -> tensor<8xi32>, tensor<8xf32>
  %ids, %w = mega.router %x softmax scale(1.0)
      : tensor<64xbf16> -> tensor<8xi32>, tensor<8xf32>
  mega.return %x : tensor<64xbf16>
}

// CHECK-LABEL: mega.block @sigmoid(
mega.block @sigmoid(%x: tensor<64xbf16>) -> tensor<64xbf16> {
  // CHECK: %[[IDS:.*]], %[[W:.*]] = mega.router %{{.*}} sigmoid scale(1.000000e+00) : tensor<64xbf16> -> tensor<8xi32>, tensor<8xf32>
  %ids, %w = mega.router %x sigmoid scale(1.0)
      : tensor<64xbf16> -> tensor<8xi32>, tensor<8xf32>
  mega.return %x : tensor<64xbf16>
}

// CHECK-LABEL: mega.block @selection_bias(
mega.block @selection_bias(%x: tensor<64xbf16>) -> tensor<64xbf16> {
  // CHECK: %[[IDS:.*]], %[[W:.*]] = mega.router %{{.*}} sigmoid bias(@bias) scale(1.000000e+00) : tensor<64xbf16> -> tensor<8xi32>, tensor<8xf32>
  %ids, %w = mega.router %x sigmoid bias(@bias) scale(1.0)
      : tensor<64xbf16> -> tensor<8xi32>, tensor<8xf32>
  mega.return %x : tensor<64xbf16>
}

// CHECK-LABEL: mega.block @renormalized(
mega.block @renormalized(%x: tensor<64xbf16>) -> tensor<64xbf16> {
  // CHECK: %[[IDS:.*]], %[[W:.*]] = mega.router %{{.*}} softmax renormalize(0.000000e+00) scale(2.500000e+00) : tensor<64xbf16> -> tensor<8xi32>, tensor<8xf32>
  %ids, %w = mega.router %x softmax renormalize(0.0) scale(2.5)
      : tensor<64xbf16> -> tensor<8xi32>, tensor<8xf32>
  mega.return %x : tensor<64xbf16>
}

// CHECK-LABEL: mega.block @probed(
mega.block @probed(%x: tensor<64xbf16>) -> tensor<64xbf16> {
  // CHECK: %[[IDS:.*]], %[[W:.*]] = mega.router %{{.*}} softmax scale(1.000000e+00) probe("0.experts") : tensor<64xbf16> -> tensor<8xi32>, tensor<8xf32>
  %ids, %w = mega.router %x softmax scale(1.0) probe("0.experts")
      : tensor<64xbf16> -> tensor<8xi32>, tensor<8xf32>
  mega.return %x : tensor<64xbf16>
}

// CHECK-LABEL: mega.block @every_expert(
mega.block @every_expert(%x: tensor<64xbf16>) -> tensor<64xbf16> {
  // CHECK: tensor<64xi32>, tensor<64xf32>
  %ids, %w = mega.router %x softmax scale(1.0)
      : tensor<64xbf16> -> tensor<64xi32>, tensor<64xf32>
  mega.return %x : tensor<64xbf16>
}
