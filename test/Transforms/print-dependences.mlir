// SPDX-License-Identifier: Apache-2.0
// RUN: megalith-opt %s -split-input-file -mega-partition -mega-print-dependences -o /dev/null | FileCheck %s

// One hazard a program.

// Element by element: each tile waits for its own.
// CHECK-LABEL: dependences of tile_local
// CHECK-NEXT: a -> b: read after write of x, tile-local; tile 0 after tile 0
// CHECK-NEXT: a -> next step's a: write after write of x, tile-local; tile 0 after tile 0
// CHECK-NEXT: b -> next step's a: write after read of x, tile-local; tile 0 after tile 0
mega.program @tile_local(%in, %out) : !mega.buffer<8xbf16>, !mega.buffer<8xbf16> {
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

// -----

// A head's tiles wait for the columns of their head: 16 of 128 elements each.
// CHECK-LABEL: dependences of heads
// CHECK-NEXT: columns -> heads: read after write of q, tile-local; tile 0 after tiles 0..3
mega.weight @w : !mega.quant<128x192xi4, group = 128, scale = bf16, zero = bf16>
mega.state @S : tensor<3x64x64xf32>
mega.program @heads(%in, %out) : !mega.buffer<128xbf16>, !mega.buffer<192xbf16> {
  %q = mega.alloc "q" : !mega.buffer<192xbf16>
  %g = mega.alloc "g" : !mega.buffer<3xbf16>
  mega.stage "columns" {
    %x = mega.load %in : !mega.buffer<128xbf16> -> tensor<128xbf16>
    %y = mega.linear %x, @w : tensor<128xbf16> -> tensor<192xbf16>
    mega.store %y, %q : tensor<192xbf16>, !mega.buffer<192xbf16>
  }
  mega.stage "heads" {
    %k = mega.load %q : !mega.buffer<192xbf16> -> tensor<3x64xbf16>
    %b = mega.load %g : !mega.buffer<3xbf16> -> tensor<3xbf16>
    %o = mega.delta_rule %k, %k, %k, %b, @S decay(none)
        : tensor<3x64xbf16>, tensor<3x64xbf16>, tensor<3x64xbf16>, tensor<3xbf16>
        -> tensor<3x64xbf16>
    mega.store %o, %out : tensor<3x64xbf16>, !mega.buffer<192xbf16>
  }
}

// -----

// A row of a plain weight reads all of its operand, before the tiles.
// CHECK-LABEL: dependences of all_to_all
// CHECK-NEXT: a -> b: read after write of x, all-to-all; the prologue after tiles 0..7
mega.weight @w : tensor<8x8xbf16>
mega.program @all_to_all(%in, %out) : !mega.buffer<8xbf16>, !mega.buffer<8xbf16> {
  %x = mega.alloc "x" : !mega.buffer<8xbf16>
  mega.stage "a" {
    %v = mega.load %in : !mega.buffer<8xbf16> -> tensor<8xbf16>
    %y = mega.elementwise %v : tensor<8xbf16> -> tensor<8xbf16>
    mega.store %y, %x : tensor<8xbf16>, !mega.buffer<8xbf16>
  }
  mega.stage "b" {
    %v = mega.load %x : !mega.buffer<8xbf16> -> tensor<8xbf16>
    %y = mega.linear %v, @w : tensor<8xbf16> -> tensor<8xbf16>
    mega.store %y, %out : tensor<8xbf16>, !mega.buffer<8xbf16>
  }
}

// -----

// What every CTA publishes in its prologue, every CTA must have written.
// CHECK-LABEL: dependences of prologue
// CHECK-NEXT: a -> b: read after write of x, all-to-all; tile 0 after all prologues
mega.program @prologue(%in, %out) : !mega.buffer<8xbf16>, !mega.buffer<8xbf16> {
  %x = mega.alloc "x" : !mega.buffer<8xbf16>
  mega.stage "a" {
    %v = mega.load %in : !mega.buffer<8xbf16> -> tensor<8xbf16>
    mega.store %v, %x : tensor<8xbf16>, !mega.buffer<8xbf16>
    %y = mega.elementwise %v : tensor<8xbf16> -> tensor<8xbf16>
  }
  mega.stage "b" {
    %v = mega.load %x : !mega.buffer<8xbf16> -> tensor<8xbf16>
    %y = mega.elementwise %v : tensor<8xbf16> -> tensor<8xbf16>
    mega.store %y, %out : tensor<8xbf16>, !mega.buffer<8xbf16>
  }
}

// -----

// One number for all, and numbers that choose.
// CHECK-LABEL: dependences of scalar_and_index
// CHECK-NEXT: a -> b: read after write of one, scalar; the prologue after tile 0
// CHECK-NEXT: a -> b: read after write of ids, index; the prologue after all prologues
mega.weight @row : tensor<1x8xbf16>
mega.weight @gate : !mega.quant<4x32x32xi4, group = 32, scale = bf16, zero = bf16>
mega.weight @up : !mega.quant<4x32x32xi4, group = 32, scale = bf16, zero = bf16>
mega.program @scalar_and_index(%in, %out) : !mega.buffer<8xbf16>, !mega.buffer<32xbf16> {
  %one = mega.alloc "one" : !mega.buffer<1xbf16>
  %ids = mega.alloc "ids" : !mega.buffer<2xi32>
  %h = mega.alloc "h" : !mega.buffer<2x32xf32>
  mega.stage "a" {
    %v = mega.load %in : !mega.buffer<8xbf16> -> tensor<8xbf16>
    %y = mega.linear %v, @row : tensor<8xbf16> -> tensor<1xbf16>
    mega.store %y, %one : tensor<1xbf16>, !mega.buffer<1xbf16>
    %i, %g = mega.router %v softmax scale(1.0) : tensor<8xbf16> -> tensor<2xi32>, tensor<2xf32>
    mega.store %i, %ids : tensor<2xi32>, !mega.buffer<2xi32>
  }
  mega.stage "b" {
    %s = mega.load %one : !mega.buffer<1xbf16> -> tensor<1xbf16>
    %i = mega.load %ids : !mega.buffer<2xi32> -> tensor<2xi32>
    %x = mega.load %out : !mega.buffer<32xbf16> -> tensor<32xbf16>
    %r = mega.expert_gate_up(%x, %i) gate @gate up @up
        : tensor<32xbf16>, tensor<2xi32> -> tensor<2x32xf32> {
    ^bb0(%p: f32, %q: f32):
      mega.yield %p
    }
    mega.store %r, %h : tensor<2x32xf32>, !mega.buffer<2x32xf32>
  }
}

// -----

// A buffer that is written again: after its readers, and after its writer.
// CHECK-LABEL: dependences of written_again
// CHECK-NEXT: first -> reads: read after write of x, tile-local; tile 0 after tile 0
// CHECK-NEXT: first -> again: write after write of x, tile-local; tile 0 after tile 0
// CHECK-NEXT: reads -> again: write after read of x, tile-local; tile 0 after tile 0
mega.program @written_again(%in, %out) : !mega.buffer<8xbf16>, !mega.buffer<8xbf16> {
  %x = mega.alloc "x" : !mega.buffer<8xbf16>
  mega.stage "first" {
    %v = mega.load %in : !mega.buffer<8xbf16> -> tensor<8xbf16>
    %y = mega.elementwise %v : tensor<8xbf16> -> tensor<8xbf16>
    mega.store %y, %x : tensor<8xbf16>, !mega.buffer<8xbf16>
  }
  mega.stage "reads" {
    %v = mega.load %x : !mega.buffer<8xbf16> -> tensor<8xbf16>
    %y = mega.elementwise %v : tensor<8xbf16> -> tensor<8xbf16>
    mega.store %y, %out : tensor<8xbf16>, !mega.buffer<8xbf16>
  }
  mega.stage "again" {
    %v = mega.load %in : !mega.buffer<8xbf16> -> tensor<8xbf16>
    %y = mega.elementwise %v : tensor<8xbf16> -> tensor<8xbf16>
    mega.store %y, %x : tensor<8xbf16>, !mega.buffer<8xbf16>
  }
}

// -----

// State: the update of this step, and that of the next one.
// CHECK-LABEL: dependences of state
// CHECK-NEXT: append -> attend: read after write of @latent, all-to-all; tile 0 after tiles 0..63
// CHECK-NEXT: append -> next step's append: write after write of @latent, tile-local; tile 0 after tile 0
// CHECK-NEXT: append -> next step's attend: read after write of @latent, all-to-all; tile 0 after tiles 0..63
// CHECK-NEXT: attend -> next step's append: write after read of @latent, all-to-all; tile 0 after tiles 0..3
mega.state @latent : tensor<?x64xbf16>
mega.state @rope : tensor<?x16xbf16>
mega.program @state(%in, %out) : !mega.buffer<64xbf16>, !mega.buffer<64xbf16> {
  mega.stage "append" {
    %pos = mega.position
    %x = mega.load %in : !mega.buffer<64xbf16> -> tensor<64xbf16>
    %y = mega.elementwise %x : tensor<64xbf16> -> tensor<64xbf16>
    mega.cache_append %y, %pos, @latent : tensor<64xbf16>
  }
  mega.stage "attend" {
    %pos = mega.position
    %q = mega.load %in : !mega.buffer<64xbf16> -> tensor<1x64xbf16>
    %qa = mega.map(%a = %q) : (tensor<1x64xbf16>) -> tensor<1x64xf32> {
      mega.yield %a
    }
    %m, %s, %c = mega.latent_scores %qa, %q, %pos, @latent, @rope scale(1.0)
        : tensor<1x64xf32>, tensor<1x64xbf16>
        -> tensor<1x4xf32>, tensor<1x4xf32>, tensor<4x1x64xf32>
  }
}
