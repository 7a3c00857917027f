// SPDX-License-Identifier: Apache-2.0
// RUN: megalith-opt %s -mega-schedule-phases -mega-verify-schedule | FileCheck %s

mega.state @cache : tensor<?x64xbf16>
mega.state @latent : tensor<?x64xbf16>
mega.state @rope : tensor<?x16xbf16>

// A stage's phase is the longest chain that ends in it: `late` waits for
// `middle`, though it reads `early` too; `free` depends on nothing and runs
// first, wherever it stands.
// CHECK-LABEL: mega.program @longest_chain(
// CHECK: mega.phase 0 {
// CHECK-NEXT: mega.stage "early"
// CHECK: mega.stage "free"
// CHECK: mega.grid_barrier covers ["early -> middle: read after write of a"]
// CHECK: mega.phase 1 {
// CHECK-NEXT: mega.stage "middle"
// CHECK-NOT: mega.stage
// CHECK: mega.grid_barrier covers ["middle -> late: read after write of b"]
// CHECK: mega.phase 2 {
// CHECK-NEXT: mega.stage "late"
// CHECK-NOT: mega.phase
mega.program @longest_chain(%in, %out) : !mega.buffer<64xbf16>, !mega.buffer<64xbf16> {
  %a = mega.alloc "a" : !mega.buffer<64xbf16>
  %b = mega.alloc "b" : !mega.buffer<64xbf16>
  %c = mega.alloc "c" : !mega.buffer<64xbf16>
  mega.stage "early" {
    %x = mega.load %in : !mega.buffer<64xbf16> -> tensor<64xbf16>
    mega.store %x, %a : tensor<64xbf16>, !mega.buffer<64xbf16>
  }
  mega.stage "middle" {
    %x = mega.load %a : !mega.buffer<64xbf16> -> tensor<64xbf16>
    mega.store %x, %b : tensor<64xbf16>, !mega.buffer<64xbf16>
  }
  mega.stage "late" {
    %x = mega.load %a : !mega.buffer<64xbf16> -> tensor<64xbf16>
    %y = mega.load %b : !mega.buffer<64xbf16> -> tensor<64xbf16>
    mega.store %y, %out : tensor<64xbf16>, !mega.buffer<64xbf16>
  }
  mega.stage "free" {
    %x = mega.load %in : !mega.buffer<64xbf16> -> tensor<64xbf16>
    mega.store %x, %c : tensor<64xbf16>, !mega.buffer<64xbf16>
  }
}

// All three kinds of dependence make a barrier; one barrier covers several.
// CHECK-LABEL: mega.program @kinds(
// CHECK: mega.grid_barrier covers ["first -> second: write after read of b", "first -> second: write after write of a"]
mega.program @kinds(%in, %out) : !mega.buffer<64xbf16>, !mega.buffer<64xbf16> {
  %a = mega.alloc "a" : !mega.buffer<64xbf16>
  %b = mega.alloc "b" : !mega.buffer<64xbf16>
  mega.stage "zero" {
    %x = mega.load %in : !mega.buffer<64xbf16> -> tensor<64xbf16>
    mega.store %x, %b : tensor<64xbf16>, !mega.buffer<64xbf16>
  }
  mega.stage "first" {
    %x = mega.load %b : !mega.buffer<64xbf16> -> tensor<64xbf16>
    mega.store %x, %a : tensor<64xbf16>, !mega.buffer<64xbf16>
  }
  mega.stage "second" {
    %x = mega.load %in : !mega.buffer<64xbf16> -> tensor<64xbf16>
    mega.store %x, %b : tensor<64xbf16>, !mega.buffer<64xbf16>
    mega.store %x, %a : tensor<64xbf16>, !mega.buffer<64xbf16>
  }
}

// State counts like a buffer, and the caller's vectors have names.
// CHECK-LABEL: mega.program @state(
// CHECK: mega.grid_barrier covers ["append -> attend: read after write of @latent", "append -> attend: write after write of the output"]
mega.program @state(%in, %out) : !mega.buffer<64xbf16>, !mega.buffer<64xbf16> {
  mega.stage "append" {
    %pos = mega.position
    %x = mega.load %in : !mega.buffer<64xbf16> -> tensor<64xbf16>
    mega.cache_append %x, %pos, @latent : tensor<64xbf16>
    mega.store %x, %out : tensor<64xbf16>, !mega.buffer<64xbf16>
  }
  mega.stage "attend" {
    %pos = mega.position
    %x = mega.load %in : !mega.buffer<64xbf16> -> tensor<64xbf16>
    %q = mega.reshape %x : tensor<64xbf16> -> tensor<1x64xbf16>
    %qa = mega.map(%a = %q) : (tensor<1x64xbf16>) -> tensor<1x64xf32> {
      mega.yield %a
    }
    %m, %s, %c = mega.latent_scores %qa, %q, %pos, @latent, @rope scale(1.0)
        : tensor<1x64xf32>, tensor<1x64xbf16>
        -> tensor<1x4xf32>, tensor<1x4xf32>, tensor<4x1x64xf32>
    mega.store %x, %out : tensor<64xbf16>, !mega.buffer<64xbf16>
  }
}

// Two readers need no order.
// CHECK-LABEL: mega.program @readers(
// CHECK-NOT: mega.grid_barrier
mega.program @readers(%in, %out) : !mega.buffer<64xbf16>, !mega.buffer<64xbf16> {
  %a = mega.alloc "a" : !mega.buffer<64xbf16>
  mega.stage "one" {
    %x = mega.load %in : !mega.buffer<64xbf16> -> tensor<64xbf16>
    mega.store %x, %a : tensor<64xbf16>, !mega.buffer<64xbf16>
  }
  mega.stage "other" {
    %x = mega.load %in : !mega.buffer<64xbf16> -> tensor<64xbf16>
    mega.store %x, %out : tensor<64xbf16>, !mega.buffer<64xbf16>
  }
}
