// SPDX-License-Identifier: Apache-2.0
// RUN: megalith-opt %s -split-input-file -mega-print-dependences -o /dev/null | FileCheck %s

// Scratch that is used again: `b` lies where `a` lay, two bytes on. Tile 0 of
// the stage that writes `b` touches bytes of tile 1's element of `a`.
// CHECK-LABEL: dependences of reuse
// CHECK-NEXT: 0 -> 1: read after write of a, tile-local; tile 0 after tile 0
// CHECK-NEXT: 0 -> 2: write after write of a's bytes by b, tile-local; tile 0 after tile 1
// CHECK-NEXT: 1 -> 2: write after read of a's bytes by b, tile-local; tile 0 after tile 1
mega.kernel @reuse(%in, %out) : !mega.buffer<8xbf16>, !mega.buffer<8xbf16>
    attributes {target = #mega.target<arch = "sm_90a", ctas = 4, threads = 256, shared_bytes = 131072>,
                weight_bytes = 0, weight_layout = [], workspace_bytes = 1024} {
  %a = mega.alloc "a" offset(256) : !mega.buffer<8xbf16>
  %b = mega.alloc "b" offset(258) : !mega.buffer<8xbf16>
  mega.phase 0 {
    mega.stage "0" tiles(8) {
      %v = mega.load %in access(<affine_map<(d0) -> (d0)>, []>) : !mega.buffer<8xbf16> -> tensor<8xbf16>
      %y = mega.elementwise %v tiling(<begin = 0, count = 8, extent = 1>) : tensor<8xbf16> -> tensor<8xbf16>
      mega.store %y, %a access(<affine_map<(d0) -> (d0)>, []>) : tensor<8xbf16>, !mega.buffer<8xbf16>
    }
  }
  mega.grid_barrier covers []
  mega.phase 1 {
    mega.stage "1" tiles(8) {
      %v = mega.load %a access(<affine_map<(d0) -> (d0)>, []>) : !mega.buffer<8xbf16> -> tensor<8xbf16>
      %y = mega.elementwise %v tiling(<begin = 0, count = 8, extent = 1>) : tensor<8xbf16> -> tensor<8xbf16>
      mega.store %y, %out access(<affine_map<(d0) -> (d0)>, []>) : tensor<8xbf16>, !mega.buffer<8xbf16>
    }
  }
  mega.grid_barrier covers []
  mega.phase 2 {
    mega.stage "2" tiles(8) {
      %v = mega.load %in access(<affine_map<(d0) -> (d0)>, []>) : !mega.buffer<8xbf16> -> tensor<8xbf16>
      %y = mega.elementwise %v tiling(<begin = 0, count = 8, extent = 1>) : tensor<8xbf16> -> tensor<8xbf16>
      mega.store %y, %b access(<affine_map<(d0) -> (d0)>, []>) : tensor<8xbf16>, !mega.buffer<8xbf16>
    }
  }
}

// -----

// Halves that different stages write have nothing in common.
// CHECK-LABEL: dependences of halves
// CHECK-NEXT: low -> both: read after write of x, tile-local; tile 0 after tile 0
// CHECK-NEXT: high -> both: read after write of x, tile-local; tile 4 after tile 0
mega.program @halves(%in, %out) : !mega.buffer<8xbf16>, !mega.buffer<8xbf16> {
  %x = mega.alloc "x" : !mega.buffer<8xbf16>
  mega.stage "low" tiles(4) {
    %v = mega.load %in access(<affine_map<(d0)[s0] -> (s0)>, [8]>) : !mega.buffer<8xbf16> -> tensor<8xbf16>
    %y = mega.elementwise %v tiling(<begin = 0, count = 4, extent = 1>) : tensor<8xbf16> -> tensor<8xbf16>
    mega.store %y, %x access(<affine_map<(d0) -> (d0)>, []>) : tensor<8xbf16>, !mega.buffer<8xbf16>
  }
  mega.stage "high" tiles(4) {
    %v = mega.load %in access(<affine_map<(d0)[s0] -> (s0)>, [8]>) : !mega.buffer<8xbf16> -> tensor<8xbf16>
    %y = mega.elementwise %v tiling(<begin = 0, count = 4, extent = 1>) : tensor<8xbf16> -> tensor<8xbf16>
    mega.store %y, %x access(<affine_map<(d0) -> (d0 + 4)>, []>) : tensor<8xbf16>, !mega.buffer<8xbf16>
  }
  mega.stage "both" tiles(8) {
    %v = mega.load %x access(<affine_map<(d0) -> (d0)>, []>) : !mega.buffer<8xbf16> -> tensor<8xbf16>
    %y = mega.elementwise %v tiling(<begin = 0, count = 8, extent = 1>) : tensor<8xbf16> -> tensor<8xbf16>
    mega.store %y, %out access(<affine_map<(d0) -> (d0)>, []>) : tensor<8xbf16>, !mega.buffer<8xbf16>
  }
}
