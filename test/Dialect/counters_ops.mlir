// SPDX-License-Identifier: Apache-2.0
// RUN: megalith-opt %s --verify-roundtrip | FileCheck %s

mega.weight @w : tensor<8x8xbf16>

// Counters by group of tiles, and one for a whole stage.
// CHECK-LABEL: mega.program @counters(
mega.program @counters(%in, %out) : !mega.buffer<8xbf16>, !mega.buffer<8xbf16> {
  %a = mega.alloc "a" : !mega.buffer<8xbf16>
  // CHECK: %[[PAIRS:.*]] = mega.counters "pairs" count(4) : !mega.counters
  %pairs = mega.counters "pairs" count(4) : !mega.counters
  // CHECK: %[[ALL:.*]] = mega.counters "all" count(1) offset(256) : !mega.counters
  %all = mega.counters "all" count(1) offset(256) : !mega.counters
  mega.phase 0 {
    mega.stage "first" tiles(8) {
      %x = mega.load %in : !mega.buffer<8xbf16> -> tensor<8xbf16>
      %y = mega.linear %x, @w tiling(<begin = 0, count = 8, extent = 1>) : tensor<8xbf16> -> tensor<8xbf16>
      mega.store %y, %a : tensor<8xbf16>, !mega.buffer<8xbf16>
      // CHECK: mega.signal %[[PAIRS]], %{{.*}} map(#{{.*}}) : tensor<8xbf16>
      mega.signal %pairs, %y map(affine_map<(t) -> (t floordiv 2)>) : tensor<8xbf16>
      mega.signal %all, %y map(affine_map<(t) -> (0)>) : tensor<8xbf16>
    }
    mega.stage "second" tiles(8) {
      // CHECK: mega.wait %[[PAIRS]] map(#{{.*}}) target(2) covers ["first -> second: read after write of a"]
      mega.wait %pairs map(affine_map<(t) -> (t floordiv 2)>) target(2)
          covers ["first -> second: read after write of a"]
      // CHECK: mega.wait %[[ALL]] map(#{{.*}}) target(8) covers []
      mega.wait %all map(affine_map<(t) -> (0)>) target(8) covers []
      %x = mega.load %a : !mega.buffer<8xbf16> -> tensor<8xbf16>
      %y = mega.elementwise %x tiling(<begin = 0, count = 8, extent = 1>) : tensor<8xbf16> -> tensor<8xbf16>
      mega.store %y, %out : tensor<8xbf16>, !mega.buffer<8xbf16>
    }
  }
  mega.grid_barrier covers []
  mega.phase 1 {
    // CHECK: mega.reset %[[PAIRS]]
    mega.reset %pairs
    mega.reset %all
  }
}
