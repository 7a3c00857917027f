// SPDX-License-Identifier: Apache-2.0
// RUN: megalith-opt %s --split-input-file --verify-diagnostics

mega.program @count(%in, %out) : !mega.buffer<8xbf16>, !mega.buffer<8xbf16> {
  // expected-error@+1 {{'mega.counters' op has count 0, expected at least 1}}
  %c = mega.counters "c" count(0) : !mega.counters
}

// -----

mega.program @offset(%in, %out) : !mega.buffer<8xbf16>, !mega.buffer<8xbf16> {
  // expected-error@+1 {{'mega.counters' op has offset 64, expected a multiple of 128}}
  %c = mega.counters "c" count(1) offset(64) : !mega.counters
}

// -----

// expected-error@+1 {{'mega.counters' op expects parent op to be one of 'mega.program, mega.kernel'}}
%c = mega.counters "c" count(1) : !mega.counters

// -----

mega.program @reset(%in, %out) : !mega.buffer<8xbf16>, !mega.buffer<8xbf16> {
  %c = mega.counters "c" count(1) : !mega.counters
  // expected-error@+1 {{'mega.reset' op expects parent op 'mega.phase'}}
  mega.reset %c
}

// -----

mega.program @prologue(%in, %out) : !mega.buffer<8xbf16>, !mega.buffer<8xbf16> {
  %c = mega.counters "c" count(1) : !mega.counters
  mega.phase 0 {
    mega.stage "s" {
      %x = mega.load %in : !mega.buffer<8xbf16> -> tensor<8xbf16>
      // expected-error@+1 {{'mega.signal' op counts tiles of a prologue value, expected a value that hangs on an anchor}}
      mega.signal %c, %x map(affine_map<(t) -> (0)>) : tensor<8xbf16>
    }
  }
}

// -----

mega.program @signal_range(%in, %out) : !mega.buffer<8xbf16>, !mega.buffer<8xbf16> {
  %c = mega.counters "c" count(7) : !mega.counters
  mega.phase 0 {
    mega.stage "s" tiles(8) {
      %x = mega.load %in : !mega.buffer<8xbf16> -> tensor<8xbf16>
      %y = mega.elementwise %x tiling(<begin = 0, count = 8, extent = 1>) : tensor<8xbf16> -> tensor<8xbf16>
      // expected-error@+1 {{'mega.signal' op maps tile 7 to counter 7 of 'c', expected one in [0, 7)}}
      mega.signal %c, %y map(affine_map<(t) -> (t)>) : tensor<8xbf16>
    }
  }
}

// -----

mega.program @wait_range(%in, %out) : !mega.buffer<8xbf16>, !mega.buffer<8xbf16> {
  %c = mega.counters "c" count(8) : !mega.counters
  mega.phase 0 {
    mega.stage "s" tiles(8) {
      // expected-error@+1 {{'mega.wait' op maps tile 0 to counter -1 of 'c', expected one in [0, 8)}}
      mega.wait %c map(affine_map<(t) -> (t - 1)>) target(1) covers []
      %x = mega.load %in : !mega.buffer<8xbf16> -> tensor<8xbf16>
      %y = mega.elementwise %x tiling(<begin = 0, count = 8, extent = 1>) : tensor<8xbf16> -> tensor<8xbf16>
    }
  }
}

// -----

mega.program @target(%in, %out) : !mega.buffer<8xbf16>, !mega.buffer<8xbf16> {
  %c = mega.counters "c" count(1) : !mega.counters
  mega.phase 0 {
    mega.stage "s" {
      // expected-error@+1 {{'mega.wait' op has target 0, expected at least 1}}
      mega.wait %c map(affine_map<(t) -> (0)>) target(0) covers []
    }
  }
}

// -----

mega.program @map(%in, %out) : !mega.buffer<8xbf16>, !mega.buffer<8xbf16> {
  %c = mega.counters "c" count(1) : !mega.counters
  mega.phase 0 {
    mega.stage "s" {
      // expected-error@+1 {{'mega.wait' op has a map with 1 dimensions, 1 symbols and 1 results, expected one dimension and one result}}
      mega.wait %c map(affine_map<(t)[s] -> (s)>) target(1) covers []
    }
  }
}

// -----

mega.program @wait(%in, %out) : !mega.buffer<8xbf16>, !mega.buffer<8xbf16> {
  %c = mega.counters "c" count(1) : !mega.counters
  // expected-error@+1 {{'mega.wait' op expects parent op 'mega.stage'}}
  mega.wait %c map(affine_map<(t) -> (0)>) target(1) covers []
}
