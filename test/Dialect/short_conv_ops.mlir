// SPDX-License-Identifier: Apache-2.0
// RUN: megalith-opt %s --verify-roundtrip | FileCheck %s

mega.weight @w : tensor<64x4xbf16>
mega.weight @stack : tensor<3x64x4xbf16>
mega.state @window : tensor<3x64xbf16>

// CHECK-LABEL: mega.block @single_weight(
mega.block @single_weight(%x: tensor<64xbf16>) -> tensor<64xf32> {
  // CHECK: mega.short_conv %{{.*}}, @w, @window : tensor<64xbf16> -> tensor<64xf32>
  %y = mega.short_conv %x, @w, @window : tensor<64xbf16> -> tensor<64xf32>
  mega.return %y : tensor<64xf32>
}

// CHECK-LABEL: mega.block @stacked_weight(
mega.block @stacked_weight(%x: tensor<64xbf16>) -> tensor<64xf32> {
  // CHECK: mega.short_conv %{{.*}}, @stack[2], @window : tensor<64xbf16> -> tensor<64xf32>
  %y = mega.short_conv %x, @stack[2], @window
      : tensor<64xbf16> -> tensor<64xf32>
  mega.return %y : tensor<64xf32>
}
