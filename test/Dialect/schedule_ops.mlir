// SPDX-License-Identifier: Apache-2.0
// RUN: megalith-opt %s --verify-roundtrip | FileCheck %s

// CHECK: module attributes {mega.target = #mega.target<arch = "sm_90a", ctas = 132, threads = 256, shared_bytes = 131072>}
module attributes {mega.target = #mega.target<arch = "sm_90a", ctas = 132, threads = 256, shared_bytes = 131072>} {

// CHECK-LABEL: mega.program @phases(
mega.program @phases(%in, %out)
    : !mega.buffer<64xbf16>, !mega.buffer<64xbf16> {
  %b = mega.alloc "b" : !mega.buffer<64xbf16>
  // CHECK: mega.phase 0 {
  mega.phase 0 {
    // CHECK-NEXT: mega.stage "first" {
    mega.stage "first" {
      %x = mega.load %in : !mega.buffer<64xbf16> -> tensor<64xbf16>
      mega.store %x, %b : tensor<64xbf16>, !mega.buffer<64xbf16>
    }
  }
  // CHECK: mega.grid_barrier covers ["first -> second: b"]
  mega.grid_barrier covers ["first -> second: b"]
  // CHECK: mega.phase 1 {
  mega.phase 1 {
    mega.stage "second" {
      %x = mega.load %b : !mega.buffer<64xbf16> -> tensor<64xbf16>
      mega.store %x, %out : tensor<64xbf16>, !mega.buffer<64xbf16>
    }
  }
}

// CHECK-LABEL: mega.kernel @kernel(
// CHECK-SAME: attributes {
// CHECK-SAME: target = #mega.target<arch = "sm_90a", ctas = 132, threads = 256, shared_bytes = 131072>
// CHECK-SAME: weight_bytes = 0
// CHECK-SAME: weight_layout = []
// CHECK-SAME: workspace_bytes = 1024
mega.kernel @kernel(%in, %out) : !mega.buffer<64xbf16>, !mega.buffer<64xbf16>
    attributes {target = #mega.target<arch = "sm_90a", ctas = 132, threads = 256, shared_bytes = 131072>,
                weight_bytes = 0, weight_layout = [], workspace_bytes = 1024} {
  %b = mega.alloc "b" offset(128) : !mega.buffer<64xbf16>
  // CHECK: mega.phase 0 {
  mega.phase 0 {
  }
}

}
