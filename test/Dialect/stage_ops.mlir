// SPDX-License-Identifier: Apache-2.0
// RUN: megalith-opt %s --verify-roundtrip | FileCheck %s

// CHECK-DAG: #[[$ALL:.*]] = affine_map<(d0)[s0] -> (s0)>
// CHECK-DAG: #[[$ROWS:.*]] = affine_map<(d0)[s0] -> (d0 * 16 + s0)>

mega.weight @w : !mega.quant<128x64xi4, group = 128, scale = bf16, zero = bf16>

// CHECK-LABEL: mega.program @program(
// CHECK-SAME: %[[IN:.*]], %[[OUT:.*]]) : !mega.buffer<64xbf16>, !mega.buffer<64xbf16> {
mega.program @program(%in, %out)
    : !mega.buffer<64xbf16>, !mega.buffer<64xbf16> {
  // CHECK-NEXT: mega.stage "copy" {
  mega.stage "copy" {
    // CHECK-NEXT: %[[X:.*]] = mega.load %[[IN]] : !mega.buffer<64xbf16> -> tensor<64xbf16>
    %x = mega.load %in : !mega.buffer<64xbf16> -> tensor<64xbf16>
    // CHECK-NEXT: mega.store %[[X]], %[[OUT]] : tensor<64xbf16>, !mega.buffer<64xbf16>
    mega.store %x, %out : tensor<64xbf16>, !mega.buffer<64xbf16>
  }
}

// CHECK-LABEL: mega.program @empty(
mega.program @empty(%in, %out)
    : !mega.buffer<64xbf16>, !mega.buffer<64xbf16> {}

// CHECK-LABEL: mega.program @allocs(
mega.program @allocs(%in, %out)
    : !mega.buffer<64xbf16>, !mega.buffer<64xbf16> {
  // CHECK: mega.alloc "a" : !mega.buffer<4x16xf32>
  %a = mega.alloc "a" : !mega.buffer<4x16xf32>
  // CHECK: mega.alloc "b" probe("0.out") : !mega.buffer<64xbf16>
  %b = mega.alloc "b" probe("0.out") : !mega.buffer<64xbf16>
  // CHECK: mega.alloc "c" offset(256) : !mega.buffer<8xi32>
  %c = mega.alloc "c" offset(256) : !mega.buffer<8xi32>
}

// A buffer has no shape of its own: a load gives it one.
// CHECK-LABEL: mega.program @reshaping_load(
mega.program @reshaping_load(%in, %out)
    : !mega.buffer<64xbf16>, !mega.buffer<64xbf16> {
  mega.stage "s" {
    // CHECK: mega.load %{{.*}} : !mega.buffer<64xbf16> -> tensor<4x16xbf16>
    %x = mega.load %in : !mega.buffer<64xbf16> -> tensor<4x16xbf16>
  }
}

// CHECK-LABEL: mega.program @partitioned(
mega.program @partitioned(%in, %out)
    : !mega.buffer<128xbf16>, !mega.buffer<64xbf16> {
  // CHECK: mega.stage "project" tiles(4) {
  mega.stage "project" tiles(4) {
    // CHECK: access(<#[[$ALL]], [128]>) : !mega.buffer<128xbf16>
    %x = mega.load %in access(<affine_map<(d0)[s0] -> (s0)>, [128]>)
        : !mega.buffer<128xbf16> -> tensor<128xbf16>
    %y = mega.linear %x, @w tiling(<begin = 0, count = 4, extent = 16>)
        : tensor<128xbf16> -> tensor<64xbf16>
    // CHECK: access(<#[[$ROWS]], [16]>) : tensor<64xbf16>
    mega.store %y, %out
        access(<affine_map<(d0)[s0] -> (d0 * 16 + s0)>, [16]>)
        : tensor<64xbf16>, !mega.buffer<64xbf16>
  }
}

// Anchors of one stage share its tile list.
// CHECK-LABEL: mega.program @two_anchors(
mega.program @two_anchors(%in, %out)
    : !mega.buffer<128xbf16>, !mega.buffer<64xbf16> {
  // CHECK: mega.stage "both" tiles(12) {
  mega.stage "both" tiles(12) {
    %x = mega.load %in : !mega.buffer<128xbf16> -> tensor<128xbf16>
    %y = mega.linear %x, @w tiling(<begin = 0, count = 4, extent = 16>)
        : tensor<128xbf16> -> tensor<64xbf16>
    %z = mega.linear %x, @w tiling(<begin = 4, count = 8, extent = 8>)
        : tensor<128xbf16> -> tensor<64xbf16>
  }
}

// A split anchor leaves slots; the reader adds them.
// CHECK-LABEL: mega.program @split(
mega.program @split(%in, %out)
    : !mega.buffer<128xbf16>, !mega.buffer<64xbf16> {
  %slots = mega.alloc "slots" : !mega.buffer<3x64xf32>
  mega.stage "partial" tiles(4) {
    %x = mega.load %in : !mega.buffer<128xbf16> -> tensor<128xbf16>
    %y = mega.linear %x, @w
        tiling(<begin = 0, count = 4, extent = 16, split = true>)
        : tensor<128xbf16> -> tensor<64xbf16>
    // CHECK: mega.store %{{.*}}, %{{.*}} : tensor<64xbf16>, !mega.buffer<3x64xf32>
    mega.store %y, %slots : tensor<64xbf16>, !mega.buffer<3x64xf32>
  }
  mega.stage "sum" {
    // CHECK: mega.load_sum %{{.*}} : !mega.buffer<3x64xf32> -> tensor<64xbf16>
    %y = mega.load_sum %slots : !mega.buffer<3x64xf32> -> tensor<64xbf16>
    mega.store %y, %out : tensor<64xbf16>, !mega.buffer<64xbf16>
  }
}

// CHECK-LABEL: mega.program @elementwise(
mega.program @elementwise(%in, %out)
    : !mega.buffer<64xbf16>, !mega.buffer<64xbf16> {
  mega.stage "s" {
    %x = mega.load %in : !mega.buffer<64xbf16> -> tensor<64xbf16>
    // CHECK: mega.elementwise %{{.*}} : tensor<64xbf16> -> tensor<64xbf16>
    %y = mega.elementwise %x : tensor<64xbf16> -> tensor<64xbf16>
    mega.store %y, %out : tensor<64xbf16>, !mega.buffer<64xbf16>
  }
}
