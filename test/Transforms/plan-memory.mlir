// SPDX-License-Identifier: Apache-2.0
// RUN: megalith-opt %s -mega-plan-memory -mega-verify-kernel -split-input-file | FileCheck %s

// `a` is read for the last time in phase 1, so `c`, which phase 2 writes, may
// take its bytes; `b` is live beside both. Byte 0 to 255 is the barrier's.
// CHECK-LABEL: mega.kernel @lifetimes(
// CHECK-SAME: workspace_bytes = 768
// CHECK: mega.alloc "a" offset(256) : !mega.buffer<64xbf16>
// CHECK: mega.alloc "b" offset(512) : !mega.buffer<64xbf16>
// CHECK: mega.alloc "c" offset(256) : !mega.buffer<64xbf16>
module attributes {mega.target = #mega.target<arch = "sm_90a", ctas = 4, threads = 256, shared_bytes = 131072>} {
mega.program @lifetimes(%in, %out) : !mega.buffer<64xbf16>, !mega.buffer<64xbf16> {
  %a = mega.alloc "a" : !mega.buffer<64xbf16>
  %b = mega.alloc "b" : !mega.buffer<64xbf16>
  %c = mega.alloc "c" : !mega.buffer<64xbf16>
  mega.phase 0 {
    mega.stage "0" {
      %x = mega.load %in : !mega.buffer<64xbf16> -> tensor<64xbf16>
      mega.store %x, %a : tensor<64xbf16>, !mega.buffer<64xbf16>
    }
  }
  mega.grid_barrier covers []
  mega.phase 1 {
    mega.stage "1" {
      %x = mega.load %a : !mega.buffer<64xbf16> -> tensor<64xbf16>
      mega.store %x, %b : tensor<64xbf16>, !mega.buffer<64xbf16>
    }
  }
  mega.grid_barrier covers []
  mega.phase 2 {
    mega.stage "2" {
      %x = mega.load %b : !mega.buffer<64xbf16> -> tensor<64xbf16>
      mega.store %x, %c : tensor<64xbf16>, !mega.buffer<64xbf16>
    }
  }
  mega.grid_barrier covers []
  mega.phase 3 {
    mega.stage "3" {
      %x = mega.load %c : !mega.buffer<64xbf16> -> tensor<64xbf16>
      mega.store %x, %out : tensor<64xbf16>, !mega.buffer<64xbf16>
    }
  }
}
}

// -----

// A probe is read after the step: nothing takes its bytes.
// CHECK-LABEL: mega.kernel @probe(
// CHECK: mega.alloc "a" probe("kept") offset(256)
// CHECK: mega.alloc "b" offset(512)
// CHECK: mega.alloc "c" offset(768)
module attributes {mega.target = #mega.target<arch = "sm_90a", ctas = 4, threads = 256, shared_bytes = 131072>} {
mega.program @probe(%in, %out) : !mega.buffer<64xbf16>, !mega.buffer<64xbf16> {
  %a = mega.alloc "a" probe("kept") : !mega.buffer<64xbf16>
  %b = mega.alloc "b" : !mega.buffer<64xbf16>
  %c = mega.alloc "c" : !mega.buffer<64xbf16>
  mega.phase 0 {
    mega.stage "0" {
      %x = mega.load %in : !mega.buffer<64xbf16> -> tensor<64xbf16>
      mega.store %x, %a : tensor<64xbf16>, !mega.buffer<64xbf16>
    }
  }
  mega.grid_barrier covers []
  mega.phase 1 {
    mega.stage "1" {
      %x = mega.load %a : !mega.buffer<64xbf16> -> tensor<64xbf16>
      mega.store %x, %b : tensor<64xbf16>, !mega.buffer<64xbf16>
    }
  }
  mega.grid_barrier covers []
  mega.phase 2 {
    mega.stage "2" {
      %x = mega.load %b : !mega.buffer<64xbf16> -> tensor<64xbf16>
      mega.store %x, %c : tensor<64xbf16>, !mega.buffer<64xbf16>
    }
  }
}
}

// -----

// Largest first, each at the lowest place that is free: the small one fills
// nothing but the end here.
// CHECK-LABEL: mega.kernel @largest_first(
// CHECK: mega.alloc "small" offset(1280) : !mega.buffer<8xf32>
// CHECK: mega.alloc "large" offset(256) : !mega.buffer<256xf32>
module attributes {mega.target = #mega.target<arch = "sm_90a", ctas = 4, threads = 256, shared_bytes = 131072>} {
mega.program @largest_first(%in, %out) : !mega.buffer<256xf32>, !mega.buffer<8xf32> {
  %small = mega.alloc "small" : !mega.buffer<8xf32>
  %large = mega.alloc "large" : !mega.buffer<256xf32>
  mega.phase 0 {
    mega.stage "0" {
      %x = mega.load %in : !mega.buffer<256xf32> -> tensor<256xf32>
      %y = mega.slice %x from 0 : tensor<256xf32> -> tensor<8xf32>
      mega.store %x, %large : tensor<256xf32>, !mega.buffer<256xf32>
      mega.store %y, %small : tensor<8xf32>, !mega.buffer<8xf32>
    }
  }
}
}

// -----

// The tensor-core weights of a stage lie one after the other without a gap,
// whatever the order of declaration; raw tensors come last. 128 x 16 codes and
// one row of scales and zeros are a unit of 1088 bytes; group 32 has four rows.
// CHECK-LABEL: mega.kernel @weights(
// CHECK-SAME: weight_bytes = 12544
// CHECK-SAME: weight_layout = [
// CHECK-SAME: {bytes = 4352 : i64, layout = "mma_m16k128", offset = 0 : i64, sources = ["q"]},
// CHECK-SAME: {bytes = 2176 : i64, layout = "mma_m16k128", offset = 4352 : i64, sources = ["k"]},
// CHECK-SAME: {bytes = 5120 : i64, layout = "mma_m16k128", offset = 6528 : i64, sources = ["other"]},
// CHECK-SAME: {bytes = 256 : i64, layout = "raw", offset = 11776 : i64, sources = ["norm"]},
// CHECK-SAME: {bytes = 512 : i64, layout = "raw", offset = 12032 : i64, sources = ["plain"]}]
module attributes {mega.target = #mega.target<arch = "sm_90a", ctas = 4, threads = 256, shared_bytes = 131072>} {
mega.weight @other : !mega.quant<128x64xi4, group = 32, scale = bf16, zero = bf16>
mega.weight @unused : tensor<128xbf16>
mega.weight @plain : tensor<2x128xbf16>
mega.weight @norm : tensor<128xbf16>
mega.weight @k : !mega.quant<128x32xi4, group = 128, scale = bf16, zero = bf16>
mega.weight @q : !mega.quant<128x64xi4, group = 128, scale = bf16, zero = bf16>
mega.program @weights(%in, %out) : !mega.buffer<128xbf16>, !mega.buffer<64xbf16> {
  mega.phase 0 {
    mega.stage "0" {
      %x = mega.load %in : !mega.buffer<128xbf16> -> tensor<128xbf16>
      %n = mega.rms_norm %x, @norm eps(1.0e-6) : tensor<128xbf16> -> tensor<128xbf16>
      %q = mega.linear %n, @q : tensor<128xbf16> -> tensor<64xbf16>
      %k = mega.linear %n, @k : tensor<128xbf16> -> tensor<32xbf16>
      %p = mega.linear %n, @plain : tensor<128xbf16> -> tensor<2xbf16>
      %again = mega.linear %x, @q : tensor<128xbf16> -> tensor<64xbf16>
      mega.store %q, %out : tensor<64xbf16>, !mega.buffer<64xbf16>
    }
    mega.stage "1" {
      %x = mega.load %in : !mega.buffer<128xbf16> -> tensor<128xbf16>
      %o = mega.linear %x, @other : tensor<128xbf16> -> tensor<64xbf16>
    }
  }
}
}

// -----

// Gate and up of an expert share units, eight columns of each; the shared
// experts follow in the same region.
// CHECK-LABEL: mega.kernel @pair(
// CHECK-SAME: {bytes = 21760 : i64, layout = "mma_m16k128_pair", offset = 0 : i64, sources = ["gate", "up", "s_gate", "s_up"]},
// CHECK-SAME: {bytes = 51200 : i64, layout = "mma_m16k128", offset = 21760 : i64, sources = ["down", "s_down"]}]
module attributes {mega.target = #mega.target<arch = "sm_90a", ctas = 4, threads = 256, shared_bytes = 131072>} {
mega.weight @gate : !mega.quant<4x128x32xi4, group = 128, scale = bf16, zero = bf16>
mega.weight @up : !mega.quant<4x128x32xi4, group = 128, scale = bf16, zero = bf16>
mega.weight @down : !mega.quant<4x32x128xi4, group = 32, scale = bf16, zero = bf16>
mega.weight @s_gate : !mega.quant<1x128x32xi4, group = 128, scale = bf16, zero = bf16>
mega.weight @s_up : !mega.quant<1x128x32xi4, group = 128, scale = bf16, zero = bf16>
mega.weight @s_down : !mega.quant<1x32x128xi4, group = 32, scale = bf16, zero = bf16>
mega.program @pair(%in, %out) : !mega.buffer<128xbf16>, !mega.buffer<128xbf16> {
  %ids = mega.alloc "ids" : !mega.buffer<2xi32>
  %gates = mega.alloc "gates" : !mega.buffer<2xf32>
  %hidden = mega.alloc "hidden" : !mega.buffer<3x32xf32>
  mega.phase 0 {
    mega.stage "0" {
      %x = mega.load %in : !mega.buffer<128xbf16> -> tensor<128xbf16>
      %i = mega.load %ids : !mega.buffer<2xi32> -> tensor<2xi32>
      %h = mega.expert_gate_up(%x, %i) gate @gate up @up shared @s_gate, @s_up
          : tensor<128xbf16>, tensor<2xi32> -> tensor<3x32xf32> {
      ^bb0(%g: f32, %u: f32):
        mega.yield %g
      }
      mega.store %h, %hidden : tensor<3x32xf32>, !mega.buffer<3x32xf32>
    }
  }
  mega.grid_barrier covers []
  mega.phase 1 {
    mega.stage "1" {
      %h = mega.load %hidden : !mega.buffer<3x32xf32> -> tensor<3x32xf32>
      %i = mega.load %ids : !mega.buffer<2xi32> -> tensor<2xi32>
      %w = mega.load %gates : !mega.buffer<2xf32> -> tensor<2xf32>
      %y = mega.expert_down(%h, %i, %w) down @down shared @s_down
          : tensor<3x32xf32>, tensor<2xi32>, tensor<2xf32> -> tensor<128xbf16>
      mega.store %y, %out : tensor<128xbf16>, !mega.buffer<128xbf16>
    }
  }
}
}

// -----

// Counters come first, 128 bytes each, and share with nothing.
// CHECK-LABEL: mega.kernel @counters(
// CHECK-SAME: workspace_bytes = 1536
// CHECK: mega.alloc "a" offset(1280) : !mega.buffer<8xf32>
// CHECK: mega.counters "c" count(3) offset(256) : !mega.counters
// CHECK: mega.counters "d" count(4) offset(768) : !mega.counters
module attributes {mega.target = #mega.target<arch = "sm_90a", ctas = 4, threads = 256, shared_bytes = 131072>} {
mega.program @counters(%in, %out) : !mega.buffer<8xf32>, !mega.buffer<8xf32> {
  %a = mega.alloc "a" : !mega.buffer<8xf32>
  %c = mega.counters "c" count(3) : !mega.counters
  %d = mega.counters "d" count(4) : !mega.counters
  mega.phase 0 {
    mega.stage "0" {
      %x = mega.load %in : !mega.buffer<8xf32> -> tensor<8xf32>
      mega.store %x, %a : tensor<8xf32>, !mega.buffer<8xf32>
    }
  }
}
}

// -----

// Phases that no barrier divides are live at once.
// CHECK-LABEL: mega.kernel @undivided(
// CHECK: mega.alloc "a" offset(256)
// CHECK: mega.alloc "b" offset(512)
module attributes {mega.target = #mega.target<arch = "sm_90a", ctas = 4, threads = 256, shared_bytes = 131072>} {
mega.program @undivided(%in, %out) : !mega.buffer<8xf32>, !mega.buffer<8xf32> {
  %a = mega.alloc "a" : !mega.buffer<8xf32>
  %b = mega.alloc "b" : !mega.buffer<8xf32>
  mega.phase 0 {
    mega.stage "0" {
      %x = mega.load %in : !mega.buffer<8xf32> -> tensor<8xf32>
      mega.store %x, %a : tensor<8xf32>, !mega.buffer<8xf32>
    }
  }
  mega.phase 1 {
    mega.stage "1" {
      %x = mega.load %in : !mega.buffer<8xf32> -> tensor<8xf32>
      mega.store %x, %b : tensor<8xf32>, !mega.buffer<8xf32>
    }
  }
}
}
