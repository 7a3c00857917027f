// SPDX-License-Identifier: Apache-2.0
// RUN: megalith-opt %s -split-input-file -mega-partition -mega-schedule-phases="sync=counters" -mega-verify-schedule | FileCheck %s
// RUN: megalith-opt %s -split-input-file -mega-partition -mega-schedule-phases="sync=counters" \
// RUN:   | grep mega.barrier_chain | FileCheck %s --check-prefix=CHAIN

// One counter a head: four column tiles of the projection and the head's gate.
// The set becomes 0 where a barrier divides it from its use.
// CHECK-DAG: #[[$QUARTER:.*]] = affine_map<(d0) -> (d0 floordiv 4)>
// CHECK-DAG: #[[$SAME:.*]] = affine_map<(d0) -> (d0)>
// CHECK-DAG: #[[$HALF:.*]] = affine_map<(d0) -> (d0 floordiv 2)>
// CHECK-LABEL: mega.program @heads(
// CHECK: %[[C:.*]] = mega.counters "columns -> heads" count(3) : !mega.counters
// CHECK: mega.phase 0 {
// CHECK-NEXT: mega.stage "columns" tiles(15) {
// CHECK: %[[Y:.*]] = mega.linear %{{.*}}, @w
// CHECK: %[[Z:.*]] = mega.linear %{{.*}}, @gates
// CHECK: mega.signal %[[C]], %[[Y]] map(#[[$QUARTER]]) : tensor<192xbf16>
// CHECK-NEXT: mega.signal %[[C]], %[[Z]] map(#[[$SAME]]) : tensor<3xbf16>
// CHECK: mega.stage "heads" tiles(6) {
// CHECK-NEXT: mega.wait %[[C]] map(#[[$HALF]]) target(5) covers ["columns -> heads: read after write of q", "columns -> heads: read after write of g"]
// CHECK: mega.grid_barrier covers ["heads -> last: read after write of o"]
// CHECK: mega.phase 1 {
// CHECK-NEXT: mega.reset %[[C]]
// CHECK-NEXT: mega.stage "last"
// All of it could share one phase, were there another for the reset.
// CHAIN: @heads({{.*}} attributes {mega.barrier_chain = ["counters need a phase in which they become 0"]}
mega.weight @w : !mega.quant<128x192xi4, group = 128, scale = bf16, zero = bf16>
mega.weight @gates : tensor<3x128xbf16>
mega.weight @last : tensor<192x192xbf16>
mega.state @S : tensor<3x64x64xf32>
mega.program @heads(%in, %out) : !mega.buffer<128xbf16>, !mega.buffer<192xbf16> {
  %q = mega.alloc "q" : !mega.buffer<192xbf16>
  %g = mega.alloc "g" : !mega.buffer<3xbf16>
  %o = mega.alloc "o" : !mega.buffer<192xbf16>
  mega.stage "columns" {
    %x = mega.load %in : !mega.buffer<128xbf16> -> tensor<128xbf16>
    %y = mega.linear %x, @w : tensor<128xbf16> -> tensor<192xbf16>
    %z = mega.linear %x, @gates : tensor<128xbf16> -> tensor<3xbf16>
    mega.store %y, %q : tensor<192xbf16>, !mega.buffer<192xbf16>
    mega.store %z, %g : tensor<3xbf16>, !mega.buffer<3xbf16>
  }
  mega.stage "heads" {
    %k = mega.load %q : !mega.buffer<192xbf16> -> tensor<3x64xbf16>
    %b = mega.load %g : !mega.buffer<3xbf16> -> tensor<3xbf16>
    %r = mega.delta_rule %k, %k, %k, %b, @S decay(none)
        : tensor<3x64xbf16>, tensor<3x64xbf16>, tensor<3x64xbf16>, tensor<3xbf16>
        -> tensor<3x64xbf16>
    mega.store %r, %o : tensor<3x64xbf16>, !mega.buffer<192xbf16>
  }
  mega.stage "last" {
    %x = mega.load %o : !mega.buffer<192xbf16> -> tensor<192xbf16>
    %y = mega.linear %x, @last : tensor<192xbf16> -> tensor<192xbf16>
    mega.store %y, %out : tensor<192xbf16>, !mega.buffer<192xbf16>
  }
}

// -----

// A prologue waits for the whole of a stage with few tiles; what the stage
// published in its prologue, the reader computes again, and the buffer goes.
// The last phase has no later one, so its counters become 0 before it.
// CHECK-DAG: #[[$ONE:.*]] = affine_map<(d0) -> (0)>
// CHECK-LABEL: mega.program @few(
// CHECK-NOT: mega.alloc "n"
// CHECK: %[[C:.*]] = mega.counters "logits -> choice" count(1) : !mega.counters
// CHECK: mega.phase 0 {
// CHECK-NEXT: mega.reset %[[C]]
// CHECK-NEXT: mega.stage "wide"
// CHECK: mega.grid_barrier
// CHECK: mega.phase 1 {
// CHECK-NEXT: mega.stage "logits" tiles(8) {
// CHECK: mega.signal %[[C]], %{{.*}} map(#[[$ONE]]) : tensor<8xbf16>
// CHECK: mega.stage "choice" tiles(144) {
// CHECK-NEXT: mega.wait %[[C]] map(#[[$ONE]]) target(8) covers ["logits -> choice: read after write of l"]
// CHECK: mega.load %{{.*}} -> tensor<72xbf16>
// CHECK: mega.rms_norm
// CHAIN: @few({{.*}} attributes {mega.barrier_chain = ["wide -> logits: read after write of h"]}
mega.weight @big : tensor<72x72xbf16>
mega.weight @norm : tensor<72xbf16>
mega.weight @small : tensor<8x72xbf16>
mega.weight @choice : tensor<72x8xbf16>
mega.program @few(%in, %out) : !mega.buffer<72xbf16>, !mega.buffer<72xbf16> {
  %h = mega.alloc "h" : !mega.buffer<72xbf16>
  %n = mega.alloc "n" : !mega.buffer<72xbf16>
  %l = mega.alloc "l" : !mega.buffer<8xbf16>
  mega.stage "wide" {
    %x = mega.load %in : !mega.buffer<72xbf16> -> tensor<72xbf16>
    %y = mega.linear %x, @big : tensor<72xbf16> -> tensor<72xbf16>
    mega.store %y, %h : tensor<72xbf16>, !mega.buffer<72xbf16>
  }
  mega.stage "logits" {
    %x = mega.load %h : !mega.buffer<72xbf16> -> tensor<72xbf16>
    %y = mega.rms_norm %x, @norm eps(1.0e-6) : tensor<72xbf16> -> tensor<72xbf16>
    mega.store %y, %n : tensor<72xbf16>, !mega.buffer<72xbf16>
    %z = mega.linear %y, @small : tensor<72xbf16> -> tensor<8xbf16>
    mega.store %z, %l : tensor<8xbf16>, !mega.buffer<8xbf16>
  }
  mega.stage "choice" {
    %x = mega.load %n : !mega.buffer<72xbf16> -> tensor<72xbf16>
    %y = mega.load %l : !mega.buffer<8xbf16> -> tensor<8xbf16>
    %z = mega.linear %y, @choice : tensor<8xbf16> -> tensor<72xbf16>
    %w = mega.linear %x, @big : tensor<72xbf16> -> tensor<72xbf16>
    mega.store %w, %out : tensor<72xbf16>, !mega.buffer<72xbf16>
  }
}

// -----

// Several CTAs share a tile of a split reduction; the steps of its reduction
// are what the tile signals. A whole stage of 80 tiles is too many for one
// counter, but by column strips there is one tile for each.
// CHECK-DAG: #[[$SAME:.*]] = affine_map<(d0) -> (d0)>
// CHECK-DAG: #[[$STRIP:.*]] = affine_map<(d0) -> (d0 floordiv 16)>
// CHECK-LABEL: mega.program @split(
// CHECK: mega.counters "sums -> last" count(80) : !mega.counters
// CHECK: mega.signal %{{.*}}, %{{.*}} map(#[[$SAME]]) : tensor<1280xf32>
// CHECK: mega.wait %{{.*}} map(#[[$STRIP]]) target(3) covers ["sums -> last: read after write of s"]
// CHECK: mega.grid_barrier covers ["last -> end: read after write of h"]
// CHAIN: @split({{.*}} attributes {mega.barrier_chain = ["last -> end: read after write of h"]}
mega.weight @w : !mega.quant<384x1280xi4, group = 128, scale = bf16, zero = bf16>
mega.weight @end : tensor<8x1280xbf16>
mega.program @split(%in, %out) : !mega.buffer<384xbf16>, !mega.buffer<8xbf16> {
  %s = mega.alloc "s" : !mega.buffer<3x1280xf32>
  %h = mega.alloc "h" : !mega.buffer<1280xbf16>
  mega.stage "sums" {
    %x = mega.load %in : !mega.buffer<384xbf16> -> tensor<384xbf16>
    %y = mega.linear %x, @w tiling(<begin = 0, count = 80, extent = 16, split = true>)
        : tensor<384xbf16> -> tensor<1280xf32>
    mega.store %y, %s : tensor<1280xf32>, !mega.buffer<3x1280xf32>
  }
  mega.stage "last" {
    %x = mega.load_sum %s : !mega.buffer<3x1280xf32> -> tensor<1280xbf16>
    %y = mega.elementwise %x : tensor<1280xbf16> -> tensor<1280xbf16>
    mega.store %y, %h : tensor<1280xbf16>, !mega.buffer<1280xbf16>
  }
  mega.stage "end" {
    %x = mega.load %h : !mega.buffer<1280xbf16> -> tensor<1280xbf16>
    %y = mega.linear %x, @end : tensor<1280xbf16> -> tensor<8xbf16>
    mega.store %y, %out : tensor<8xbf16>, !mega.buffer<8xbf16>
  }
}

// -----

// Counters need a phase in which they become 0: two stages that could share
// their only phase do not.
// CHECK-LABEL: mega.program @room(
// CHECK-NOT: mega.counters
// CHECK: mega.grid_barrier
// CHAIN: @room({{.*}} attributes {mega.barrier_chain = ["counters need a phase in which they become 0"]}
mega.program @room(%in, %out) : !mega.buffer<8xbf16>, !mega.buffer<8xbf16> {
  %x = mega.alloc "x" : !mega.buffer<8xbf16>
  mega.stage "a" {
    %v = mega.load %in : !mega.buffer<8xbf16> -> tensor<8xbf16>
    %y = mega.elementwise %v : tensor<8xbf16> -> tensor<8xbf16>
    mega.store %y, %x : tensor<8xbf16>, !mega.buffer<8xbf16>
  }
  mega.stage "b" {
    %v = mega.load %x : !mega.buffer<8xbf16> -> tensor<8xbf16>
    %y = mega.elementwise %v : tensor<8xbf16> -> tensor<8xbf16>
    mega.store %y, %out : tensor<8xbf16>, !mega.buffer<8xbf16>
  }
}
