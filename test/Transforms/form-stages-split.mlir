// SPDX-License-Identifier: Apache-2.0
// RUN: megalith-opt %s -mega-form-stages | FileCheck %s

// Which anchors divide their reduction axis. 132 CTAs take two rounds for 144
// tiles and are idle for nearly half of the time; 1056 tiles are eight full
// rounds.
module attributes {mega.target = #mega.target<arch = "sm_90a", ctas = 132, threads = 256, shared_bytes = 131072>} {

mega.weight @w144 : !mega.quant<128x2304xi4, group = 128, scale = bf16, zero = bf16>
mega.weight @w1024 : !mega.quant<128x16384xi4, group = 128, scale = bf16, zero = bf16>
mega.weight @w64 : !mega.quant<128x1024xi4, group = 128, scale = bf16, zero = bf16>
mega.weight @w68 : !mega.quant<128x1088xi4, group = 128, scale = bf16, zero = bf16>
mega.weight @plain : tensor<64x128xbf16>
mega.weight @back : !mega.quant<2304x128xi4, group = 128, scale = bf16, zero = bf16>

mega.state @cache : tensor<?x2304xbf16>
mega.state @cache64 : tensor<?x1024xbf16>

// Each tile has at most ceil(132 / 144) + 1 = 2 contributors, but never more than
// steps of 128 inputs, here 1; the value that they add up to is f32 and rounded
// by the reader, to bf16 as the op says.
// CHECK-LABEL: mega.program @few_tiles(
// CHECK: %[[SLOTS:.*]] = mega.alloc "w144.linear" : !mega.buffer<1x2304xf32>
// CHECK: mega.stage "linear w144" {
// CHECK: %[[Y:.*]] = mega.linear %{{.*}}, @w144 tiling(<begin = 0, count = 144, extent = 16, split = true>) : tensor<128xbf16> -> tensor<2304xf32>
// CHECK-NEXT: mega.store %[[Y]], %[[SLOTS]] : tensor<2304xf32>, !mega.buffer<1x2304xf32>
// CHECK: mega.stage "elementwise" {
// CHECK: mega.load_sum %[[SLOTS]] : !mega.buffer<1x2304xf32> -> tensor<2304xbf16>
mega.block @few_tiles(%x: tensor<128xbf16>) -> tensor<2304xbf16> {
  %y = mega.linear %x, @w144 : tensor<128xbf16> -> tensor<2304xbf16>
  mega.return %y : tensor<2304xbf16>
}

// CHECK-LABEL: mega.program @many_tiles(
// CHECK-NOT: mega.alloc
// CHECK: mega.linear %{{.*}}, @w1024 : tensor<128xbf16> -> tensor<16384xbf16>
// CHECK-NOT: mega.load_sum
mega.block @many_tiles(%x: tensor<128xbf16>) -> tensor<16384xbf16> {
  %y = mega.linear %x, @w1024 : tensor<128xbf16> -> tensor<16384xbf16>
  mega.return %y : tensor<16384xbf16>
}

// An epilogue that updates state needs whole elements, so the linear stays
// whole, also where the state hangs on a map of two uses of it.
// CHECK-LABEL: mega.program @state_behind_it(
// CHECK-NOT: split = true
// CHECK: mega.linear
// CHECK: mega.map
// CHECK: mega.cache_append
mega.block @state_behind_it(%x: tensor<128xbf16>) -> tensor<128xbf16> {
  %pos = mega.position
  %y = mega.linear %x, @w144 : tensor<128xbf16> -> tensor<2304xbf16>
  %m = mega.map(%a = %y, %b = %y) : (tensor<2304xbf16>, tensor<2304xbf16>) -> tensor<2304xbf16> {
    %t = arith.mulf %a, %b : f32
    mega.yield %t
  }
  mega.cache_append %m, %pos, @cache : tensor<2304xbf16>
  mega.return %x : tensor<128xbf16>
}

// A stage splits as a whole: 64 and 68 tiles alone would split, together they
// are a full round.
// CHECK-LABEL: mega.program @together(
// CHECK-NOT: split = true
// CHECK: mega.stage "linear w64 +1" {
mega.block @together(%x: tensor<128xbf16>) -> tensor<1024xbf16> {
  %pos = mega.position
  %a = mega.linear %x, @w64 : tensor<128xbf16> -> tensor<1024xbf16>
  %b = mega.linear %x, @w68 : tensor<128xbf16> -> tensor<1088xbf16>
  %c = mega.slice %b from 0 : tensor<1088xbf16> -> tensor<1024xbf16>
  %y = mega.map(%p = %a, %q = %c) : (tensor<1024xbf16>, tensor<1024xbf16>) -> tensor<1024xbf16> {
    %t = arith.addf %p, %q : f32
    mega.yield %t
  }
  mega.return %y : tensor<1024xbf16>
}

// Neither does a stage of which one part must stay whole.
// CHECK-LABEL: mega.program @one_stays_whole(
// CHECK-NOT: split = true
mega.block @one_stays_whole(%x: tensor<128xbf16>) -> tensor<1024xbf16> {
  %pos = mega.position
  %a = mega.linear %x, @w64 : tensor<128xbf16> -> tensor<1024xbf16>
  %y = mega.linear %x, @w144 : tensor<128xbf16> -> tensor<2304xbf16>
  mega.cache_append %a, %pos, @cache64 : tensor<1024xbf16>
  %z = mega.slice %y from 0 : tensor<2304xbf16> -> tensor<1024xbf16>
  mega.return %z : tensor<1024xbf16>
}

// Rows of a plain weight are never split.
// CHECK-LABEL: mega.program @plain_rows(
// CHECK-NOT: split = true
// CHECK: mega.linear %{{.*}}, @plain
mega.block @plain_rows(%x: tensor<128xbf16>) -> tensor<64xbf16> {
  %y = mega.linear %x, @plain : tensor<128xbf16> -> tensor<64xbf16>
  mega.return %y : tensor<64xbf16>
}

}
