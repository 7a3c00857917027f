// SPDX-License-Identifier: Apache-2.0
// RUN: megalith-opt %s -mega-partition | FileCheck %s

// Tiles, and the elements that each tile reads and writes.

// CHECK-DAG: #[[$ALL:.*]] = affine_map<(d0)[s0] -> (s0)>
// CHECK-DAG: #[[$TILE16:.*]] = affine_map<(d0)[s0] -> (d0 * 16 + s0)>
// CHECK-DAG: #[[$AFTER4:.*]] = affine_map<(d0)[s0] -> (d0 + s0 - 4)>
// CHECK-DAG: #[[$HEAD:.*]] = affine_map<(d0)[s0] -> ((d0 floordiv 2) * 64 + s0)>
// CHECK-DAG: #[[$GATE:.*]] = affine_map<(d0)[s0] -> (d0 floordiv 2 + s0)>
// CHECK-DAG: #[[$STRIP:.*]] = affine_map<(d0)[s0] -> (d0 * 32 + s0)>
// CHECK-DAG: #[[$QUERY:.*]] = affine_map<(d0)[s0] -> ((d0 floordiv 2) * 48 + s0)>
// CHECK-DAG: #[[$CHUNK:.*]] = affine_map<(d0)[s0] -> (s0, d0)>
// CHECK-DAG: #[[$CONTEXT:.*]] = affine_map<(d0)[s0, s1] -> (d0, s1, s0)>
// CHECK-DAG: #[[$SLOTS:.*]] = affine_map<(d0)[s0, s1] -> (s1, d0 * 16 + s0)>
// CHECK-DAG: #[[$SUM:.*]] = affine_map<(d0)[s0] -> (d0 + s0 * 64)>
// CHECK-DAG: #[[$AFTER32:.*]] = affine_map<(d0)[s0] -> (d0 * 16 + s0 - 32)>
// CHECK-DAG: #[[$JOIN:.*]] = affine_map<(d0)[s0] -> ((d0 mod 2) * 96 + (d0 floordiv 2) * 48 + s0)>
// CHECK-DAG: #[[$WIDE:.*]] = affine_map<(d0)[s0] -> (d0 floordiv 2, (d0 mod 2) * 128 + s0)>
// CHECK-DAG: #[[$ONE:.*]] = affine_map<(d0)[s0] -> (d0 + s0)>

mega.weight @w : !mega.quant<128x64xi4, group = 128, scale = bf16, zero = bf16>
mega.weight @plain : tensor<8x128xbf16>
mega.weight @kv_b : !mega.quant<256x96xi4, group = 128, scale = bf16, zero = bf16>
mega.weight @kv_b_160 : !mega.quant<160x96xi4, group = 32, scale = bf16, zero = bf16>
mega.state @S : tensor<3x64x64xf32>
mega.state @latent : tensor<?x256xbf16>
mega.state @rope : tensor<?x16xbf16>

// Each tile reads the whole operand and writes its 16 columns; the rows of the
// plain weight follow in the same list.
// CHECK-LABEL: mega.program @linear(
mega.program @linear(%in, %out) : !mega.buffer<128xbf16>, !mega.buffer<64xbf16> {
  %rows = mega.alloc "rows" : !mega.buffer<8xbf16>
  // CHECK: mega.stage "s" tiles(12) {
  mega.stage "s" {
    // CHECK: mega.load %{{.*}} access(<#[[$ALL]], [128]>)
    %x = mega.load %in : !mega.buffer<128xbf16> -> tensor<128xbf16>
    // CHECK: @w tiling(<begin = 0, count = 4, extent = 16>)
    %y = mega.linear %x, @w : tensor<128xbf16> -> tensor<64xbf16>
    // CHECK: @plain tiling(<begin = 4, count = 8, extent = 1>)
    %z = mega.linear %x, @plain : tensor<128xbf16> -> tensor<8xbf16>
    // CHECK: mega.store %{{.*}}, %{{.*}} access(<#[[$TILE16]], [16]>)
    mega.store %y, %out : tensor<64xbf16>, !mega.buffer<64xbf16>
    // CHECK: mega.store %{{.*}}, %{{.*}} access(<#[[$AFTER4]], [1]>)
    mega.store %z, %rows : tensor<8xbf16>, !mega.buffer<8xbf16>
  }
}

// A slice moves what its tiles write; what falls outside is not written.
// CHECK-LABEL: mega.program @slice(
mega.program @slice(%in, %out) : !mega.buffer<128xbf16>, !mega.buffer<32xbf16> {
  mega.stage "s" {
    %x = mega.load %in : !mega.buffer<128xbf16> -> tensor<128xbf16>
    %y = mega.linear %x, @w : tensor<128xbf16> -> tensor<64xbf16>
    %z = mega.slice %y from 32 : tensor<64xbf16> -> tensor<32xbf16>
    // CHECK: mega.store %{{.*}}, %{{.*}} access(<#[[$AFTER32]], [16]>)
    mega.store %z, %out : tensor<32xbf16>, !mega.buffer<32xbf16>
  }
}

// Whose slot a contributor fills depends on the run-time grid: a tile may
// write any, in its columns.
// CHECK-LABEL: mega.program @split(
mega.program @split(%in, %out) : !mega.buffer<128xbf16>, !mega.buffer<64xbf16> {
  %slots = mega.alloc "slots" : !mega.buffer<3x64xf32>
  mega.stage "s" {
    %x = mega.load %in : !mega.buffer<128xbf16> -> tensor<128xbf16>
    // CHECK: tiling(<begin = 0, count = 4, extent = 16, split = true>)
    %y = mega.linear %x, @w tiling(<begin = 0, count = 4, extent = 16, split = true>)
        : tensor<128xbf16> -> tensor<64xf32>
    // CHECK: mega.store %{{.*}}, %{{.*}} access(<#[[$SLOTS]], [16, 3]>)
    mega.store %y, %slots : tensor<64xf32>, !mega.buffer<3x64xf32>
  }
}

// A tile of a recurrence is a strip of 32 value columns of one head: two
// strips read the same keys.
// CHECK-LABEL: mega.program @delta_rule(
mega.program @delta_rule(%in, %out) : !mega.buffer<192xbf16>, !mega.buffer<192xbf16> {
  %gate = mega.alloc "gate" : !mega.buffer<3xbf16>
  %value = mega.alloc "value" : !mega.buffer<192xbf16>
  // CHECK: mega.stage "s" tiles(6) {
  mega.stage "s" {
    // CHECK: mega.load %{{.*}} access(<#[[$HEAD]], [64]>)
    %k = mega.load %in : !mega.buffer<192xbf16> -> tensor<3x64xbf16>
    // CHECK: mega.load %{{.*}} access(<#[[$STRIP]], [32]>)
    %v = mega.load %value : !mega.buffer<192xbf16> -> tensor<3x64xbf16>
    // CHECK: mega.load %{{.*}} access(<#[[$GATE]], [1]>)
    %b = mega.load %gate : !mega.buffer<3xbf16> -> tensor<3xbf16>
    // CHECK: tiling(<begin = 0, count = 6, extent = 32>)
    %o = mega.delta_rule %k, %k, %v, %b, @S decay(none)
        : tensor<3x64xbf16>, tensor<3x64xbf16>, tensor<3x64xbf16>, tensor<3xbf16>
        -> tensor<3x64xbf16>
    // CHECK: mega.store %{{.*}}, %{{.*}} access(<#[[$STRIP]], [32]>)
    mega.store %o, %out : tensor<3x64xbf16>, !mega.buffer<192xbf16>
  }
}

// A tile of the absorbed query is 128 latent channels of one head.
// CHECK-LABEL: mega.program @latent_query(
mega.program @latent_query(%in, %out) : !mega.buffer<96xbf16>, !mega.buffer<96xbf16> {
  %absorbed = mega.alloc "absorbed" : !mega.buffer<2x256xf32>
  // CHECK: mega.stage "s" tiles(4) {
  mega.stage "s" {
    // CHECK: mega.load %{{.*}} access(<#[[$QUERY]], [48]>)
    %q = mega.load %in : !mega.buffer<96xbf16> -> tensor<2x48xbf16>
    // CHECK: tiling(<begin = 0, count = 4, extent = 128>)
    %qa = mega.latent_query %q, @kv_b keys(32) : tensor<2x48xbf16> -> tensor<2x256xf32>
    mega.store %qa, %absorbed : tensor<2x256xf32>, !mega.buffer<2x256xf32>
  }
}

// Rows that 128 channels do not divide have an index for each dimension.
// CHECK-LABEL: mega.program @latent_query_rows(
mega.program @latent_query_rows(%in, %out) : !mega.buffer<96xbf16>, !mega.buffer<96xbf16> {
  %absorbed = mega.alloc "absorbed" : !mega.buffer<2x160xf32>
  mega.stage "s" {
    %q = mega.load %in : !mega.buffer<96xbf16> -> tensor<2x48xbf16>
    %qa = mega.latent_query %q, @kv_b_160 keys(32) : tensor<2x48xbf16> -> tensor<2x160xf32>
    // CHECK: mega.store %{{.*}}, %{{.*}} access(<#[[$WIDE]], [128]>)
    mega.store %qa, %absorbed : tensor<2x160xf32>, !mega.buffer<2x160xf32>
  }
}

// A tile of the values is a head of one slot.
// CHECK-LABEL: mega.program @latent_value(
mega.program @latent_value(%in, %out) : !mega.buffer<96xbf16>, !mega.buffer<96xbf16> {
  %max = mega.alloc "max" : !mega.buffer<2x4xf32>
  %context = mega.alloc "context" : !mega.buffer<4x2x256xf32>
  %slots = mega.alloc "slots" : !mega.buffer<2x96xf32>
  mega.stage "s" {
    %m = mega.load %max : !mega.buffer<2x4xf32> -> tensor<2x4xf32>
    %c = mega.load %context : !mega.buffer<4x2x256xf32> -> tensor<4x2x256xf32>
    %o = mega.latent_value %m, %m, %c, @kv_b tiling(<begin = 0, count = 4, extent = 128, split = true>)
        : tensor<2x4xf32>, tensor<2x4xf32>, tensor<4x2x256xf32> -> tensor<2x48xf32>
    // CHECK: mega.store %{{.*}}, %{{.*}} access(<#[[$JOIN]], [48]>)
    mega.store %o, %slots : tensor<2x48xf32>, !mega.buffer<2x96xf32>
  }
}

// A tile of the scores is a chunk of the caches and writes its own column, and
// its own rows of the context.
// CHECK-LABEL: mega.program @latent_scores(
mega.program @latent_scores(%in, %out) : !mega.buffer<96xbf16>, !mega.buffer<96xbf16> {
  %absorbed = mega.alloc "absorbed" : !mega.buffer<2x256xf32>
  %max = mega.alloc "max" : !mega.buffer<2x4xf32>
  %context = mega.alloc "context" : !mega.buffer<4x2x256xf32>
  // CHECK: mega.stage "s" tiles(4) {
  mega.stage "s" {
    %pos = mega.position
    // CHECK: mega.load %{{.*}} access(<#[[$ALL]], [512]>)
    %qa = mega.load %absorbed : !mega.buffer<2x256xf32> -> tensor<2x256xf32>
    %q = mega.load %in : !mega.buffer<96xbf16> -> tensor<2x48xbf16>
    // CHECK: tiling(<begin = 0, count = 4, extent = 1>)
    %m, %s, %c = mega.latent_scores %qa, %q, %pos, @latent, @rope scale(1.0)
        : tensor<2x256xf32>, tensor<2x48xbf16>
        -> tensor<2x4xf32>, tensor<2x4xf32>, tensor<4x2x256xf32>
    // CHECK: mega.store %{{.*}}, %{{.*}} access(<#[[$CHUNK]], [2]>)
    mega.store %m, %max : tensor<2x4xf32>, !mega.buffer<2x4xf32>
    // CHECK: mega.store %{{.*}}, %{{.*}} access(<#[[$CONTEXT]], [256, 2]>)
    mega.store %c, %context : tensor<4x2x256xf32>, !mega.buffer<4x2x256xf32>
  }
}

// An element a tile. What a prologue op reads first is read whole.
// CHECK-LABEL: mega.program @elementwise(
mega.program @elementwise(%in, %out) : !mega.buffer<64xbf16>, !mega.buffer<64xbf16> {
  // CHECK: mega.stage "direct" tiles(64) {
  mega.stage "direct" {
    // CHECK: mega.load %{{.*}} access(<#[[$ONE]], [1]>)
    %x = mega.load %in : !mega.buffer<64xbf16> -> tensor<64xbf16>
    %y = mega.elementwise %x : tensor<64xbf16> -> tensor<64xbf16>
    // CHECK: mega.store %{{.*}}, %{{.*}} access(<#[[$ONE]], [1]>)
    mega.store %y, %out : tensor<64xbf16>, !mega.buffer<64xbf16>
  }
  mega.stage "behind a map" {
    // CHECK: mega.load %{{.*}} access(<#[[$ONE]], [1]>)
    %x = mega.load %in : !mega.buffer<64xbf16> -> tensor<64xbf16>
    %m = mega.map(%a = %x) : (tensor<64xbf16>) -> tensor<64xbf16> {
      mega.yield %a
    }
    %y = mega.elementwise %m : tensor<64xbf16> -> tensor<64xbf16>
    mega.store %y, %out : tensor<64xbf16>, !mega.buffer<64xbf16>
  }
}

// An element of a sum of slots is read in every slot.
// CHECK-LABEL: mega.program @sum(
mega.program @sum(%in, %out) : !mega.buffer<64xbf16>, !mega.buffer<64xbf16> {
  %slots = mega.alloc "slots" : !mega.buffer<3x64xf32>
  mega.stage "by element" {
    // CHECK: mega.load %{{.*}} access(<#[[$ONE]], [1]>)
    %x = mega.load %in : !mega.buffer<64xbf16> -> tensor<64xbf16>
    // CHECK: mega.load_sum %{{.*}} access(<#[[$SUM]], [3]>)
    %s = mega.load_sum %slots : !mega.buffer<3x64xf32> -> tensor<64xbf16>
    %m = mega.map(%a = %x, %b = %s) : (tensor<64xbf16>, tensor<64xbf16>) -> tensor<64xbf16> {
      %c = arith.addf %a, %b : f32
      mega.yield %c
    }
    %y = mega.elementwise %m : tensor<64xbf16> -> tensor<64xbf16>
    mega.store %y, %out : tensor<64xbf16>, !mega.buffer<64xbf16>
  }
  // A value that is used twice is computed once, before the tiles.
  mega.stage "used twice" {
    // CHECK: mega.load_sum %{{.*}} access(<#[[$ALL]], [192]>)
    %s = mega.load_sum %slots : !mega.buffer<3x64xf32> -> tensor<64xbf16>
    %m = mega.map(%a = %s, %b = %s) : (tensor<64xbf16>, tensor<64xbf16>) -> tensor<64xbf16> {
      %c = arith.addf %a, %b : f32
      mega.yield %c
    }
    %y = mega.elementwise %m : tensor<64xbf16> -> tensor<64xbf16>
    mega.store %y, %out : tensor<64xbf16>, !mega.buffer<64xbf16>
  }
}

// Every CTA holds a prologue value, so a store of it writes all elements.
// CHECK-LABEL: mega.program @prologue_store(
mega.program @prologue_store(%in, %out) : !mega.buffer<64xbf16>, !mega.buffer<64xbf16> {
  %copy = mega.alloc "copy" : !mega.buffer<64xbf16>
  mega.stage "s" {
    %x = mega.load %in : !mega.buffer<64xbf16> -> tensor<64xbf16>
    // CHECK: mega.store %{{.*}}, %{{.*}} access(<#[[$ALL]], [64]>)
    mega.store %x, %copy : tensor<64xbf16>, !mega.buffer<64xbf16>
    %y = mega.elementwise %x : tensor<64xbf16> -> tensor<64xbf16>
    mega.store %y, %out : tensor<64xbf16>, !mega.buffer<64xbf16>
  }
}
