// SPDX-License-Identifier: Apache-2.0
// RUN: megalith-opt %s --canonicalize --cse | FileCheck %s
// What generic passes must leave alone.

mega.state @c : tensor<?x64xbf16>
mega.state @s : tensor<3x64xbf16>
mega.weight @w : tensor<64x4xbf16>

// Two allocs that look alike are two buffers: merged, one stage would read
// what the other overwrites.
// CHECK-LABEL: mega.program @equal_allocs(
mega.program @equal_allocs(%in, %out)
    : !mega.buffer<64xbf16>, !mega.buffer<64xbf16> {
  // CHECK: %[[A:.*]] = mega.alloc "scratch"
  // CHECK: %[[B:.*]] = mega.alloc "scratch"
  %a = mega.alloc "scratch" : !mega.buffer<64xbf16>
  %b = mega.alloc "scratch" : !mega.buffer<64xbf16>
  mega.stage "s" {
    %x = mega.load %in : !mega.buffer<64xbf16> -> tensor<64xbf16>
    // CHECK: mega.store %{{.*}}, %[[A]]
    mega.store %x, %a : tensor<64xbf16>, !mega.buffer<64xbf16>
    // CHECK: mega.store %{{.*}}, %[[B]]
    mega.store %x, %b : tensor<64xbf16>, !mega.buffer<64xbf16>
  }
}

// CHECK-LABEL: mega.program @equal_barriers(
mega.program @equal_barriers(%in, %out)
    : !mega.buffer<64xbf16>, !mega.buffer<64xbf16> {
  // CHECK-COUNT-2: mega.grid_barrier covers ["x"]
  mega.grid_barrier covers ["x"]
  mega.grid_barrier covers ["x"]
}

// A load after a store of the same buffer is another value.
// CHECK-LABEL: mega.program @load_store_load(
mega.program @load_store_load(%in, %out)
    : !mega.buffer<64xbf16>, !mega.buffer<64xbf16> {
  mega.stage "s" {
    // CHECK: mega.load %[[BUFFER:[a-z0-9]+]]
    %x = mega.load %out : !mega.buffer<64xbf16> -> tensor<64xbf16>
    %y = mega.load %in : !mega.buffer<64xbf16> -> tensor<64xbf16>
    // CHECK: mega.store
    mega.store %y, %out : tensor<64xbf16>, !mega.buffer<64xbf16>
    // CHECK: mega.load %[[BUFFER]]
    %z = mega.load %out : !mega.buffer<64xbf16> -> tensor<64xbf16>
    %s = mega.map(%a = %x, %b = %z)
        : (tensor<64xbf16>, tensor<64xbf16>) -> tensor<64xbf16> {
      %t = arith.addf %a, %b : f32
      mega.yield %t
    }
    mega.store %s, %in : tensor<64xbf16>, !mega.buffer<64xbf16>
  }
}

// State outlives the step: its updates stay although no result is used, and
// two updates are two.
// CHECK-LABEL: mega.block @state_updates(
mega.block @state_updates(%x: tensor<64xbf16>) -> tensor<64xbf16> {
  %pos = mega.position
  // CHECK: mega.cache_append
  mega.cache_append %x, %pos, @c : tensor<64xbf16>
  // CHECK-COUNT-2: mega.short_conv
  %a = mega.short_conv %x, @w, @s : tensor<64xbf16> -> tensor<64xf32>
  %b = mega.short_conv %x, @w, @s : tensor<64xbf16> -> tensor<64xf32>
  mega.return %x : tensor<64xbf16>
}

// Pure work is merged and removed.
// CHECK-LABEL: mega.block @pure_work(
mega.block @pure_work(%x: tensor<64xbf16>) -> tensor<64xbf16> {
  // CHECK: %[[A:.*]] = mega.reshape
  // CHECK-NEXT: mega.map(%{{.*}} = %[[A]], %{{.*}} = %[[A]])
  %a = mega.reshape %x : tensor<64xbf16> -> tensor<4x16xbf16>
  %b = mega.reshape %x : tensor<64xbf16> -> tensor<4x16xbf16>
  %unused = mega.slice %x from 0 : tensor<64xbf16> -> tensor<8xbf16>
  %s = mega.map(%p = %a, %q = %b)
      : (tensor<4x16xbf16>, tensor<4x16xbf16>) -> tensor<4x16xbf16> {
    %t = arith.addf %p, %q : f32
    mega.yield %t
  }
  %y = mega.reshape %s : tensor<4x16xbf16> -> tensor<64xbf16>
  mega.return %y : tensor<64xbf16>
}
