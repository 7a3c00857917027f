// SPDX-License-Identifier: Apache-2.0
// RUN: megalith-opt %s -mega-form-stages | FileCheck %s

// Four CTAs: four tiles of 16 outputs fill the grid, so 64 outputs are enough
// for a linear that is not split.
module attributes {mega.target = #mega.target<arch = "sm_90a", ctas = 4, threads = 256, shared_bytes = 131072>} {

mega.weight @norm : tensor<32xbf16>
mega.weight @q : !mega.quant<32x64xi4, group = 32, scale = bf16, zero = bf16>
mega.weight @k : !mega.quant<32x64xi4, group = 32, scale = bf16, zero = bf16>
mega.weight @in128 : !mega.quant<128x64xi4, group = 128, scale = bf16, zero = bf16>
mega.weight @in32 : !mega.quant<128x64xi4, group = 32, scale = bf16, zero = bf16>
mega.weight @square : !mega.quant<64x64xi4, group = 32, scale = bf16, zero = bf16>
mega.weight @plain : tensor<16x32xbf16>
mega.weight @taps : tensor<64x4xbf16>
mega.weight @norm64 : tensor<64xbf16>
mega.weight @rows : tensor<64x64xbf16>

mega.state @conv : tensor<3x64xbf16>
mega.state @cache : tensor<?x64xbf16>
mega.state @cache16 : tensor<?x16xbf16>
mega.state @S : tensor<2x32x32xf32>

// Linears of one operand are one stage, whatever stands between them; rows of a
// plain weight come after tensor-core tiles.
// CHECK-LABEL: mega.program @one_operand_one_stage(
// CHECK: mega.stage "linear q +2" {
// CHECK: %[[N:.*]] = mega.rms_norm
// CHECK: mega.linear %[[N]], @q
// CHECK-NEXT: mega.linear %[[N]], @k
// CHECK: mega.linear %[[N]], @plain
// CHECK: mega.cache_append
// CHECK: mega.stage "elementwise" {
// CHECK-NOT: mega.stage
mega.block @one_operand_one_stage(%x: tensor<32xbf16>) -> tensor<64xbf16> {
  %pos = mega.position
  %n = mega.rms_norm %x, @norm eps(1.0e-6) : tensor<32xbf16> -> tensor<32xbf16>
  %p = mega.linear %n, @plain : tensor<32xbf16> -> tensor<16xbf16>
  mega.cache_append %p, %pos, @cache16 : tensor<16xbf16>
  %q = mega.linear %n, @q : tensor<32xbf16> -> tensor<64xbf16>
  %k = mega.linear %n, @k : tensor<32xbf16> -> tensor<64xbf16>
  %y = mega.map(%a = %q, %b = %k) : (tensor<64xbf16>, tensor<64xbf16>) -> tensor<64xbf16> {
    %t = arith.addf %a, %b : f32
    mega.yield %t
  }
  mega.return %y : tensor<64xbf16>
}

// A stage walks units of one format: another group is another stage.
// CHECK-LABEL: mega.program @other_group_other_stage(
// CHECK: mega.stage "linear in128" {
// CHECK: mega.stage "linear in32" {
mega.block @other_group_other_stage(%x: tensor<128xbf16>) -> tensor<64xbf16> {
  %a = mega.linear %x, @in128 : tensor<128xbf16> -> tensor<64xbf16>
  %b = mega.linear %x, @in32 : tensor<128xbf16> -> tensor<64xbf16>
  %y = mega.map(%p = %a, %q = %b) : (tensor<64xbf16>, tensor<64xbf16>) -> tensor<64xbf16> {
    %t = arith.addf %p, %q : f32
    mega.yield %t
  }
  mega.return %y : tensor<64xbf16>
}

// The owner of a tile goes on with it: conv, map and view are one stage, and
// only the last value is published.
// CHECK-LABEL: mega.program @epilogue(
// CHECK-SAME: %{{.*}}, %[[OUT:.*]]) :
// CHECK-NOT: mega.alloc
// CHECK: mega.stage "linear q" {
// CHECK: %[[Q:.*]] = mega.linear
// CHECK-NEXT: %[[C:.*]] = mega.short_conv %[[Q]], @taps, @conv
// CHECK-NEXT: %[[R:.*]] = mega.reshape %[[C]]
// CHECK-NEXT: %[[M:.*]] = mega.map(%{{.*}} = %[[R]])
// CHECK: %[[F:.*]] = mega.reshape %[[M]]
// CHECK-NEXT: mega.store %[[F]], %[[OUT]]
// CHECK-NOT: mega.stage
mega.block @epilogue(%x: tensor<32xbf16>) -> tensor<64xbf16> {
  %q = mega.linear %x, @q : tensor<32xbf16> -> tensor<64xbf16>
  %c = mega.short_conv %q, @taps, @conv : tensor<64xbf16> -> tensor<64xf32>
  %h = mega.reshape %c : tensor<64xf32> -> tensor<2x32xf32>
  %m = mega.map(%a = %h) : (tensor<2x32xf32>) -> tensor<2x32xbf16> {
    mega.yield %a
  }
  %y = mega.reshape %m : tensor<2x32xbf16> -> tensor<64xbf16>
  mega.return %y : tensor<64xbf16>
}

// Adjacent pairs lie in one tile: the owner rotates them.
// CHECK-LABEL: mega.program @rope_interleaved(
// CHECK: mega.stage "linear q" {
// CHECK: mega.linear
// CHECK: mega.rope
// CHECK: mega.cache_append
// CHECK: mega.stage "elementwise"
// CHECK-NOT: mega.rope
mega.block @rope_interleaved(%x: tensor<32xbf16>) -> tensor<32xbf16> {
  %pos = mega.position
  %q = mega.linear %x, @q : tensor<32xbf16> -> tensor<64xbf16>
  %r = mega.rope %q, %pos interleaved range(16, 32) theta(10000.0)
      : tensor<64xbf16> -> tensor<64xbf16>
  mega.cache_append %r, %pos, @cache : tensor<64xbf16>
  mega.return %x : tensor<32xbf16>
}

// Halves lie in different tiles: every reader rotates for itself, and an
// elementwise anchor owns the row that is appended.
// CHECK-LABEL: mega.program @rope_half(
// CHECK: mega.alloc "q.linear" : !mega.buffer<64xbf16>
// CHECK: mega.stage "linear q" {
// CHECK: %[[Q:.*]] = mega.linear
// CHECK-NEXT: mega.store %[[Q]]
// CHECK: mega.stage "elementwise
// CHECK: %[[L:.*]] = mega.load %{{.*}} -> tensor<64xbf16>
// CHECK: %[[R:.*]] = mega.rope %[[L]]
// CHECK: %[[E:.*]] = mega.elementwise %[[R]]
// CHECK: mega.cache_append %[[E]]
mega.block @rope_half(%x: tensor<32xbf16>) -> tensor<32xbf16> {
  %pos = mega.position
  %q = mega.linear %x, @q : tensor<32xbf16> -> tensor<64xbf16>
  %r = mega.rope %q, %pos half range(0, 64) theta(10000.0)
      : tensor<64xbf16> -> tensor<64xbf16>
  mega.cache_append %r, %pos, @cache : tensor<64xbf16>
  mega.return %x : tensor<32xbf16>
}

// A row of a plain weight holds no pair.
// CHECK-LABEL: mega.program @rope_of_rows(
// CHECK: mega.stage "linear rows" {
// CHECK: %[[Q:.*]] = mega.linear
// CHECK-NEXT: mega.store %[[Q]]
// CHECK: mega.stage "elementwise" {
// CHECK: mega.rope
// CHECK: mega.elementwise
mega.block @rope_of_rows(%x: tensor<64xbf16>) -> tensor<64xbf16> {
  %pos = mega.position
  %q = mega.linear %x, @rows : tensor<64xbf16> -> tensor<64xbf16>
  %y = mega.rope %q, %pos interleaved range(0, 64) theta(10000.0)
      : tensor<64xbf16> -> tensor<64xbf16>
  mega.return %y : tensor<64xbf16>
}

// Nor does a recurrence's tile: the result gets an owner of its own.
// CHECK-LABEL: mega.program @rope_of_recurrence(
// CHECK: mega.stage "delta_rule S" {
// CHECK: %[[O:.*]] = mega.delta_rule
// CHECK-NEXT: mega.store %[[O]]
// CHECK: mega.stage "elementwise" {
// CHECK: mega.rope
// CHECK: mega.elementwise
// CHECK: mega.store
mega.block @rope_of_recurrence(%x: tensor<64xbf16>) -> tensor<64xbf16> {
  %pos = mega.position
  %h = mega.reshape %x : tensor<64xbf16> -> tensor<2x32xbf16>
  %b = mega.slice %x from 0 : tensor<64xbf16> -> tensor<2xbf16>
  %o = mega.delta_rule %h, %h, %h, %b, @S decay(none)
      : tensor<2x32xbf16>, tensor<2x32xbf16>, tensor<2x32xbf16>, tensor<2xbf16>
      -> tensor<2x32xbf16>
  %r = mega.rope %o, %pos interleaved range(0, 32) theta(10000.0)
      : tensor<2x32xbf16> -> tensor<2x32xbf16>
  %y = mega.reshape %r : tensor<2x32xbf16> -> tensor<64xbf16>
  mega.return %y : tensor<64xbf16>
}

// No tile's owner holds the elements of two producers: the map is computed
// where it is read, and the result's elements are shared out.
// CHECK-LABEL: mega.program @two_producers(
// CHECK: mega.stage "linear q" {
// CHECK-NOT: mega.map
// CHECK: mega.stage "linear square" {
// CHECK-NOT: mega.map
// CHECK: mega.stage "elementwise" {
// CHECK: %[[M:.*]] = mega.map
// CHECK: %[[E:.*]] = mega.elementwise %[[M]]
// CHECK-NEXT: mega.store %[[E]]
mega.block @two_producers(%x: tensor<32xbf16>) -> tensor<64xbf16> {
  %q = mega.linear %x, @q : tensor<32xbf16> -> tensor<64xbf16>
  %k = mega.linear %q, @square : tensor<64xbf16> -> tensor<64xbf16>
  %y = mega.map(%a = %q, %b = %k) : (tensor<64xbf16>, tensor<64xbf16>) -> tensor<64xbf16> {
    %t = arith.addf %a, %b : f32
    mega.yield %t
  }
  mega.return %y : tensor<64xbf16>
}

// Two uses of one producer are one producer.
// CHECK-LABEL: mega.program @one_producer_twice(
// CHECK: mega.linear
// CHECK-NEXT: mega.map
// CHECK: mega.short_conv
// CHECK-NOT: mega.elementwise
mega.block @one_producer_twice(%x: tensor<32xbf16>) -> tensor<64xbf16> {
  %q = mega.linear %x, @q : tensor<32xbf16> -> tensor<64xbf16>
  %m = mega.map(%a = %q, %b = %q) : (tensor<64xbf16>, tensor<64xbf16>) -> tensor<64xbf16> {
    %t = arith.mulf %a, %b : f32
    mega.yield %t
  }
  %y = mega.short_conv %m, @taps, @conv : tensor<64xbf16> -> tensor<64xbf16>
  mega.return %y : tensor<64xbf16>
}

// The earliest reader publishes a norm that a later stage reads again.
// CHECK-LABEL: mega.program @published(
// CHECK: %[[B:.*]] = mega.alloc "norm64.rms_norm"
// CHECK: mega.stage "linear square" {
// CHECK: %[[N:.*]] = mega.rms_norm
// CHECK: mega.store %[[N]], %[[B]]
// CHECK: mega.stage "linear square #1" {
// CHECK-NOT: mega.rms_norm
// CHECK: mega.load %[[B]]
mega.block @published(%x: tensor<64xbf16>) -> tensor<64xbf16> {
  %n = mega.rms_norm %x, @norm64 eps(1.0e-6) : tensor<64xbf16> -> tensor<64xbf16>
  %a = mega.linear %n, @square : tensor<64xbf16> -> tensor<64xbf16>
  %m = mega.map(%p = %a, %q = %n) : (tensor<64xbf16>, tensor<64xbf16>) -> tensor<64xbf16> {
    %t = arith.mulf %p, %q : f32
    mega.yield %t
  }
  %y = mega.linear %m, @square : tensor<64xbf16> -> tensor<64xbf16>
  mega.return %y : tensor<64xbf16>
}

// Stages that run together each compute it: a barrier costs more.
// CHECK-LABEL: mega.program @recomputed(
// CHECK-NOT: mega.alloc "norm64.rms_norm"
// CHECK: mega.stage "linear square" {
// CHECK: mega.rms_norm
// CHECK: mega.stage "elementwise" {
// CHECK: mega.rms_norm
mega.block @recomputed(%x: tensor<64xbf16>) -> tensor<64xbf16> {
  %pos = mega.position
  %n = mega.rms_norm %x, @norm64 eps(1.0e-6) : tensor<64xbf16> -> tensor<64xbf16>
  %y = mega.linear %n, @square : tensor<64xbf16> -> tensor<64xbf16>
  mega.cache_append %n, %pos, @cache : tensor<64xbf16>
  mega.return %y : tensor<64xbf16>
}

// A block that passes its operand through still writes every element once.
// CHECK-LABEL: mega.program @identity(
// CHECK-SAME: %[[IN:.*]], %[[OUT:.*]]) :
// CHECK: mega.stage "elementwise" {
// CHECK-NEXT: %[[X:.*]] = mega.load %[[IN]]
// CHECK-NEXT: %[[E:.*]] = mega.elementwise %[[X]]
// CHECK-NEXT: mega.store %[[E]], %[[OUT]]
mega.block @identity(%x: tensor<64xbf16>) -> tensor<64xbf16> {
  mega.return %x : tensor<64xbf16>
}

// A stage may read the block's result again: it reads the output vector.
// CHECK-LABEL: mega.program @result_read_again(
// CHECK-SAME: %[[IN:.*]], %[[OUT:.*]]) :
// CHECK-NOT: mega.alloc
// CHECK: mega.stage "linear square" {
// CHECK: mega.store %{{.*}}, %[[OUT]]
// CHECK: mega.stage "linear square #1" {
// CHECK: mega.load %[[OUT]]
// CHECK: mega.cache_append
mega.block @result_read_again(%x: tensor<64xbf16>) -> tensor<64xbf16> {
  %pos = mega.position
  %y = mega.linear %x, @square : tensor<64xbf16> -> tensor<64xbf16>
  %k = mega.linear %y, @square : tensor<64xbf16> -> tensor<64xbf16>
  mega.cache_append %k, %pos, @cache : tensor<64xbf16>
  mega.return %y : tensor<64xbf16>
}

}
