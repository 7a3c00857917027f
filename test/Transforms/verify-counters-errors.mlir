// SPDX-License-Identifier: Apache-2.0
// RUN: megalith-opt %s -mega-verify-schedule -split-input-file -verify-diagnostics

// The sound schedule that the others break: each element waits for its own.
#at = affine_map<(d0) -> (d0)>
mega.program @sound(%in, %out) : !mega.buffer<8xbf16>, !mega.buffer<8xbf16> {
  %x = mega.alloc "x" : !mega.buffer<8xbf16>
  %c = mega.counters "c" count(8) : !mega.counters
  mega.phase 0 {
    mega.stage "a" tiles(8) {
      %v = mega.load %in access(<#at, []>) : !mega.buffer<8xbf16> -> tensor<8xbf16>
      %y = mega.elementwise %v tiling(<begin = 0, count = 8, extent = 1>) : tensor<8xbf16> -> tensor<8xbf16>
      mega.store %y, %x access(<#at, []>) : tensor<8xbf16>, !mega.buffer<8xbf16>
      mega.signal %c, %y map(#at) : tensor<8xbf16>
    }
    mega.stage "b" tiles(8) {
      mega.wait %c map(#at) target(1) covers []
      %v = mega.load %x access(<#at, []>) : !mega.buffer<8xbf16> -> tensor<8xbf16>
      %y = mega.elementwise %v tiling(<begin = 0, count = 8, extent = 1>) : tensor<8xbf16> -> tensor<8xbf16>
      mega.store %y, %out access(<#at, []>) : tensor<8xbf16>, !mega.buffer<8xbf16>
    }
  }
  mega.grid_barrier covers []
  mega.phase 1 {
    mega.reset %c
  }
}

// -----

// Every tile must wait for the right ones: here each for its neighbour's.
#at = affine_map<(d0) -> (d0)>
mega.program @wrong_map(%in, %out) : !mega.buffer<8xbf16>, !mega.buffer<8xbf16> {
  %x = mega.alloc "x" : !mega.buffer<8xbf16>
  %c = mega.counters "c" count(8) : !mega.counters
  mega.phase 0 {
    mega.stage "a" tiles(8) {
      %v = mega.load %in access(<#at, []>) : !mega.buffer<8xbf16> -> tensor<8xbf16>
      %y = mega.elementwise %v tiling(<begin = 0, count = 8, extent = 1>) : tensor<8xbf16> -> tensor<8xbf16>
      // expected-note @below {{the earlier access}}
      mega.store %y, %x access(<#at, []>) : tensor<8xbf16>, !mega.buffer<8xbf16>
      mega.signal %c, %y map(#at) : tensor<8xbf16>
    }
    // expected-error @below {{'mega.stage' op 'b' does not wait for all of 'a', expected its tile}}
    mega.stage "b" tiles(8) {
      mega.wait %c map(affine_map<(d0) -> ((d0 + 1) mod 8)>) target(1) covers []
      // expected-note @below {{the later access}}
      %v = mega.load %x access(<#at, []>) : !mega.buffer<8xbf16> -> tensor<8xbf16>
      %y = mega.elementwise %v tiling(<begin = 0, count = 8, extent = 1>) : tensor<8xbf16> -> tensor<8xbf16>
      mega.store %y, %out access(<#at, []>) : tensor<8xbf16>, !mega.buffer<8xbf16>
    }
  }
  mega.grid_barrier covers []
  mega.phase 1 {
    mega.reset %c
  }
}

// -----

// A wait before a tile comes too late for what the prologue reads.
#at = affine_map<(d0) -> (d0)>
#all = affine_map<(d0)[s0] -> (s0)>
mega.weight @w : tensor<8x8xbf16>
mega.program @prologue(%in, %out) : !mega.buffer<8xbf16>, !mega.buffer<8xbf16> {
  %x = mega.alloc "x" : !mega.buffer<8xbf16>
  %c = mega.counters "c" count(8) : !mega.counters
  mega.phase 0 {
    mega.stage "a" tiles(8) {
      %v = mega.load %in access(<#at, []>) : !mega.buffer<8xbf16> -> tensor<8xbf16>
      %y = mega.elementwise %v tiling(<begin = 0, count = 8, extent = 1>) : tensor<8xbf16> -> tensor<8xbf16>
      // expected-note @below {{the earlier access}}
      mega.store %y, %x access(<#at, []>) : tensor<8xbf16>, !mega.buffer<8xbf16>
      mega.signal %c, %y map(#at) : tensor<8xbf16>
    }
    // expected-error @below {{'mega.stage' op 'b' does not wait for all of 'a', expected its prologue to wait for tile 7 for the read after write of x}}
    mega.stage "b" tiles(8) {
      mega.wait %c map(#at) target(1) covers []
      // expected-note @below {{the later access}}
      %v = mega.load %x access(<#all, [8]>) : !mega.buffer<8xbf16> -> tensor<8xbf16>
      %y = mega.linear %v, @w tiling(<begin = 0, count = 8, extent = 1>) : tensor<8xbf16> -> tensor<8xbf16>
      mega.store %y, %out access(<#at, []>) : tensor<8xbf16>, !mega.buffer<8xbf16>
    }
  }
  mega.grid_barrier covers []
  mega.phase 1 {
    mega.reset %c
  }
}

// -----

// What every CTA does in its prologue no tile's signal tells.
#at = affine_map<(d0) -> (d0)>
#all = affine_map<(d0)[s0] -> (s0)>
mega.program @published(%in, %out) : !mega.buffer<8xbf16>, !mega.buffer<8xbf16> {
  %x = mega.alloc "x" : !mega.buffer<8xbf16>
  %c = mega.counters "c" count(1) : !mega.counters
  mega.phase 0 {
    mega.stage "a" tiles(8) {
      %v = mega.load %in access(<#all, [8]>) : !mega.buffer<8xbf16> -> tensor<8xbf16>
      // expected-note @below {{the earlier access}}
      mega.store %v, %x access(<#all, [8]>) : tensor<8xbf16>, !mega.buffer<8xbf16>
      %y = mega.elementwise %v tiling(<begin = 0, count = 8, extent = 1>) : tensor<8xbf16> -> tensor<8xbf16>
      mega.signal %c, %y map(affine_map<(d0) -> (0)>) : tensor<8xbf16>
    }
    // expected-error @below {{'mega.stage' op 'b' and 'a' have no barrier between them, expected one for the read after write of x}}
    mega.stage "b" tiles(8) {
      mega.wait %c map(affine_map<(d0) -> (0)>) target(8) covers []
      // expected-note @below {{the later access}}
      %v = mega.load %x access(<#at, []>) : !mega.buffer<8xbf16> -> tensor<8xbf16>
      %y = mega.elementwise %v tiling(<begin = 0, count = 8, extent = 1>) : tensor<8xbf16> -> tensor<8xbf16>
      mega.store %y, %out access(<#at, []>) : tensor<8xbf16>, !mega.buffer<8xbf16>
    }
  }
  mega.grid_barrier covers []
  mega.phase 1 {
    mega.reset %c
  }
}

// -----

// A target above what comes is a wait without end; one below it ends early.
#at = affine_map<(d0) -> (d0)>
mega.program @target(%in, %out) : !mega.buffer<8xbf16>, !mega.buffer<8xbf16> {
  %x = mega.alloc "x" : !mega.buffer<8xbf16>
  // expected-note @below {{the counters}}
  %c = mega.counters "c" count(4) : !mega.counters
  mega.phase 0 {
    mega.stage "a" tiles(8) {
      %v = mega.load %in access(<#at, []>) : !mega.buffer<8xbf16> -> tensor<8xbf16>
      %y = mega.elementwise %v tiling(<begin = 0, count = 8, extent = 1>) : tensor<8xbf16> -> tensor<8xbf16>
      mega.store %y, %x access(<#at, []>) : tensor<8xbf16>, !mega.buffer<8xbf16>
      // expected-note @below {{a signal}}
      mega.signal %c, %y map(affine_map<(d0) -> (d0 floordiv 2)>) : tensor<8xbf16>
    }
    mega.stage "b" tiles(8) {
      // expected-error @below {{'mega.wait' op expects 1 signals of counter 0 of 'c', which gets 2 in a step}}
      mega.wait %c map(affine_map<(d0) -> (d0 floordiv 2)>) target(1) covers []
      %v = mega.load %x access(<#at, []>) : !mega.buffer<8xbf16> -> tensor<8xbf16>
      %y = mega.elementwise %v tiling(<begin = 0, count = 8, extent = 1>) : tensor<8xbf16> -> tensor<8xbf16>
      mega.store %y, %out access(<#at, []>) : tensor<8xbf16>, !mega.buffer<8xbf16>
    }
  }
  mega.grid_barrier covers []
  mega.phase 1 {
    mega.reset %c
  }
}

// -----

// CTAs walk the stages in order: who waits before the signal waits for ever.
#at = affine_map<(d0) -> (d0)>
mega.program @deadlock(%in, %out) : !mega.buffer<8xbf16>, !mega.buffer<8xbf16> {
  %x = mega.alloc "x" : !mega.buffer<8xbf16>
  %c = mega.counters "c" count(8) : !mega.counters
  mega.phase 0 {
    mega.stage "b" tiles(8) {
      // expected-error @below {{'mega.wait' op waits for counters 'c' that 'a' signals, expected an earlier stage}}
      mega.wait %c map(#at) target(1) covers []
      %v = mega.load %x access(<#at, []>) : !mega.buffer<8xbf16> -> tensor<8xbf16>
      %y = mega.elementwise %v tiling(<begin = 0, count = 8, extent = 1>) : tensor<8xbf16> -> tensor<8xbf16>
      mega.store %y, %out access(<#at, []>) : tensor<8xbf16>, !mega.buffer<8xbf16>
    }
    mega.stage "a" tiles(8) {
      %v = mega.load %in access(<#at, []>) : !mega.buffer<8xbf16> -> tensor<8xbf16>
      %y = mega.elementwise %v tiling(<begin = 0, count = 8, extent = 1>) : tensor<8xbf16> -> tensor<8xbf16>
      mega.store %y, %x access(<#at, []>) : tensor<8xbf16>, !mega.buffer<8xbf16>
      // expected-note @below {{the signal}}
      mega.signal %c, %y map(#at) : tensor<8xbf16>
    }
  }
  mega.grid_barrier covers []
  mega.phase 1 {
    mega.reset %c
  }
}

// -----

// Without a reset the next step finds the counters full.
#at = affine_map<(d0) -> (d0)>
mega.program @no_reset(%in, %out) : !mega.buffer<8xbf16>, !mega.buffer<8xbf16> {
  %x = mega.alloc "x" : !mega.buffer<8xbf16>
  // expected-error @below {{'mega.counters' op 'c' is reset 0 times a step, expected once}}
  // expected-note @below {{the counters}}
  %c = mega.counters "c" count(8) : !mega.counters
  mega.phase 0 {
    mega.stage "a" tiles(8) {
      %v = mega.load %in access(<#at, []>) : !mega.buffer<8xbf16> -> tensor<8xbf16>
      %y = mega.elementwise %v tiling(<begin = 0, count = 8, extent = 1>) : tensor<8xbf16> -> tensor<8xbf16>
      mega.store %y, %x access(<#at, []>) : tensor<8xbf16>, !mega.buffer<8xbf16>
      // expected-note @below {{a signal}}
      mega.signal %c, %y map(#at) : tensor<8xbf16>
    }
    mega.stage "b" tiles(8) {
      // expected-note @below {{a wait}}
      mega.wait %c map(#at) target(1) covers []
      %v = mega.load %x access(<#at, []>) : !mega.buffer<8xbf16> -> tensor<8xbf16>
      %y = mega.elementwise %v tiling(<begin = 0, count = 8, extent = 1>) : tensor<8xbf16> -> tensor<8xbf16>
      mega.store %y, %out access(<#at, []>) : tensor<8xbf16>, !mega.buffer<8xbf16>
    }
  }
}

// -----

// A reset beside the signals may come before or after them.
#at = affine_map<(d0) -> (d0)>
mega.program @early_reset(%in, %out) : !mega.buffer<8xbf16>, !mega.buffer<8xbf16> {
  %x = mega.alloc "x" : !mega.buffer<8xbf16>
  %c = mega.counters "c" count(8) : !mega.counters
  mega.phase 0 {
    // expected-error @below {{'mega.reset' op of 'c' has no barrier between it and 'a', expected one after or before all signals and waits}}
    mega.reset %c
    mega.stage "a" tiles(8) {
      %v = mega.load %in access(<#at, []>) : !mega.buffer<8xbf16> -> tensor<8xbf16>
      %y = mega.elementwise %v tiling(<begin = 0, count = 8, extent = 1>) : tensor<8xbf16> -> tensor<8xbf16>
      mega.store %y, %x access(<#at, []>) : tensor<8xbf16>, !mega.buffer<8xbf16>
      // expected-note @below {{which uses the counters}}
      mega.signal %c, %y map(#at) : tensor<8xbf16>
    }
  }
  mega.grid_barrier covers []
  mega.phase 1 {
    mega.stage "b" tiles(8) {
      mega.wait %c map(#at) target(1) covers []
      %v = mega.load %x access(<#at, []>) : !mega.buffer<8xbf16> -> tensor<8xbf16>
      %y = mega.elementwise %v tiling(<begin = 0, count = 8, extent = 1>) : tensor<8xbf16> -> tensor<8xbf16>
      mega.store %y, %out access(<#at, []>) : tensor<8xbf16>, !mega.buffer<8xbf16>
    }
  }
}

// -----

// Write after read by counters: sound, for the reader's tile signals when it
// has read.
#at = affine_map<(d0) -> (d0)>
mega.program @write_after_read(%in, %out) : !mega.buffer<8xbf16>, !mega.buffer<8xbf16> {
  %x = mega.alloc "x" : !mega.buffer<8xbf16>
  %c = mega.counters "c" count(8) : !mega.counters
  mega.phase 0 {
    mega.stage "fill" tiles(8) {
      %v = mega.load %in access(<#at, []>) : !mega.buffer<8xbf16> -> tensor<8xbf16>
      %y = mega.elementwise %v tiling(<begin = 0, count = 8, extent = 1>) : tensor<8xbf16> -> tensor<8xbf16>
      mega.store %y, %x access(<#at, []>) : tensor<8xbf16>, !mega.buffer<8xbf16>
    }
  }
  mega.grid_barrier covers []
  mega.phase 1 {
    mega.stage "read" tiles(8) {
      %v = mega.load %x access(<#at, []>) : !mega.buffer<8xbf16> -> tensor<8xbf16>
      %y = mega.elementwise %v tiling(<begin = 0, count = 8, extent = 1>) : tensor<8xbf16> -> tensor<8xbf16>
      mega.store %y, %out access(<#at, []>) : tensor<8xbf16>, !mega.buffer<8xbf16>
      mega.signal %c, %y map(#at) : tensor<8xbf16>
    }
    mega.stage "write" tiles(8) {
      mega.wait %c map(#at) target(1) covers []
      %v = mega.load %in access(<#at, []>) : !mega.buffer<8xbf16> -> tensor<8xbf16>
      %y = mega.elementwise %v tiling(<begin = 0, count = 8, extent = 1>) : tensor<8xbf16> -> tensor<8xbf16>
      mega.store %y, %x access(<#at, []>) : tensor<8xbf16>, !mega.buffer<8xbf16>
    }
  }
  mega.grid_barrier covers []
  mega.phase 2 {
    mega.reset %c
  }
}

// -----

// But not if the reader's prologue reads: other CTAs may not have begun.
#at = affine_map<(d0) -> (d0)>
#all = affine_map<(d0)[s0] -> (s0)>
mega.weight @w : tensor<8x8xbf16>
mega.program @prologue_reads(%in, %out) : !mega.buffer<8xbf16>, !mega.buffer<8xbf16> {
  %x = mega.alloc "x" : !mega.buffer<8xbf16>
  %c = mega.counters "c" count(1) : !mega.counters
  mega.phase 0 {
    mega.stage "fill" tiles(8) {
      %v = mega.load %in access(<#at, []>) : !mega.buffer<8xbf16> -> tensor<8xbf16>
      %y = mega.elementwise %v tiling(<begin = 0, count = 8, extent = 1>) : tensor<8xbf16> -> tensor<8xbf16>
      mega.store %y, %x access(<#at, []>) : tensor<8xbf16>, !mega.buffer<8xbf16>
    }
  }
  mega.grid_barrier covers []
  mega.phase 1 {
    mega.stage "read" tiles(8) {
      // expected-note @below {{the earlier access}}
      %v = mega.load %x access(<#all, [8]>) : !mega.buffer<8xbf16> -> tensor<8xbf16>
      %y = mega.linear %v, @w tiling(<begin = 0, count = 8, extent = 1>) : tensor<8xbf16> -> tensor<8xbf16>
      mega.store %y, %out access(<#at, []>) : tensor<8xbf16>, !mega.buffer<8xbf16>
      mega.signal %c, %y map(affine_map<(d0) -> (0)>) : tensor<8xbf16>
    }
    // expected-error @below {{'mega.stage' op 'write' and 'read' have no barrier between them, expected one for the write after read of x}}
    mega.stage "write" tiles(8) {
      mega.wait %c map(affine_map<(d0) -> (0)>) target(8) covers []
      %v = mega.load %in access(<#at, []>) : !mega.buffer<8xbf16> -> tensor<8xbf16>
      %y = mega.elementwise %v tiling(<begin = 0, count = 8, extent = 1>) : tensor<8xbf16> -> tensor<8xbf16>
      // expected-note @below {{the later access}}
      mega.store %y, %x access(<#at, []>) : tensor<8xbf16>, !mega.buffer<8xbf16>
    }
  }
  mega.grid_barrier covers []
  mega.phase 2 {
    mega.reset %c
  }
}

// -----

// Through a stage between them: the last waits for the middle, which waited for
// the first.
#at = affine_map<(d0) -> (d0)>
mega.program @through(%in, %out) : !mega.buffer<8xbf16>, !mega.buffer<8xbf16> {
  %x = mega.alloc "x" : !mega.buffer<8xbf16>
  %c = mega.counters "c" count(8) : !mega.counters
  %d = mega.counters "d" count(4) : !mega.counters
  mega.phase 0 {
    mega.stage "first" tiles(8) {
      %v = mega.load %in access(<#at, []>) : !mega.buffer<8xbf16> -> tensor<8xbf16>
      %y = mega.elementwise %v tiling(<begin = 0, count = 8, extent = 1>) : tensor<8xbf16> -> tensor<8xbf16>
      mega.store %y, %x access(<#at, []>) : tensor<8xbf16>, !mega.buffer<8xbf16>
      mega.signal %c, %y map(#at) : tensor<8xbf16>
    }
    mega.stage "middle" tiles(8) {
      mega.wait %c map(#at) target(1) covers []
      %v = mega.load %in access(<#at, []>) : !mega.buffer<8xbf16> -> tensor<8xbf16>
      %y = mega.elementwise %v tiling(<begin = 0, count = 8, extent = 1>) : tensor<8xbf16> -> tensor<8xbf16>
      mega.signal %d, %y map(affine_map<(d0) -> (d0 floordiv 2)>) : tensor<8xbf16>
    }
    mega.stage "last" tiles(8) {
      mega.wait %d map(affine_map<(d0) -> (d0 floordiv 2)>) target(2) covers []
      %v = mega.load %x access(<#at, []>) : !mega.buffer<8xbf16> -> tensor<8xbf16>
      %y = mega.elementwise %v tiling(<begin = 0, count = 8, extent = 1>) : tensor<8xbf16> -> tensor<8xbf16>
      mega.store %y, %out access(<#at, []>) : tensor<8xbf16>, !mega.buffer<8xbf16>
    }
  }
  mega.grid_barrier covers []
  mega.phase 1 {
    mega.reset %c
    mega.reset %d
  }
}

// -----

// Tiles of one stage must not touch each other's elements.
#at = affine_map<(d0) -> (d0)>
mega.program @own_tiles(%in, %out) : !mega.buffer<8xbf16>, !mega.buffer<8xbf16> {
  mega.phase 0 {
    // expected-error @below {{'mega.stage' op 's' orders none of its own tiles, expected no write after read of the input}}
    mega.stage "s" tiles(8) {
      // expected-note @below {{the earlier access}}
      %v = mega.load %in access(<affine_map<(d0) -> (d0 + 1)>, []>) : !mega.buffer<8xbf16> -> tensor<8xbf16>
      %y = mega.elementwise %v tiling(<begin = 0, count = 8, extent = 1>) : tensor<8xbf16> -> tensor<8xbf16>
      // expected-note @below {{the later access}}
      mega.store %y, %in access(<#at, []>) : tensor<8xbf16>, !mega.buffer<8xbf16>
    }
  }
}

// -----

// In place, tile by tile, is sound.
#at = affine_map<(d0) -> (d0)>
mega.program @in_place(%in, %out) : !mega.buffer<8xbf16>, !mega.buffer<8xbf16> {
  mega.phase 0 {
    mega.stage "s" tiles(8) {
      %v = mega.load %in access(<#at, []>) : !mega.buffer<8xbf16> -> tensor<8xbf16>
      %y = mega.elementwise %v tiling(<begin = 0, count = 8, extent = 1>) : tensor<8xbf16> -> tensor<8xbf16>
      mega.store %y, %in access(<#at, []>) : tensor<8xbf16>, !mega.buffer<8xbf16>
    }
  }
}

// -----

mega.program @no_tiles(%in, %out) : !mega.buffer<8xbf16>, !mega.buffer<8xbf16> {
  %c = mega.counters "c" count(1) : !mega.counters
  mega.phase 0 {
    mega.stage "s" {
      %v = mega.load %in : !mega.buffer<8xbf16> -> tensor<8xbf16>
      %y = mega.elementwise %v : tensor<8xbf16> -> tensor<8xbf16>
      // expected-error @below {{'mega.signal' op counts tiles of an anchor without a tiling, expected a partitioned stage}}
      mega.signal %c, %y map(affine_map<(d0) -> (0)>) : tensor<8xbf16>
    }
  }
}
