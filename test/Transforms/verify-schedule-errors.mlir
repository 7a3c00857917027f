// SPDX-License-Identifier: Apache-2.0
// RUN: megalith-opt %s -mega-verify-schedule -split-input-file -verify-diagnostics

mega.program @unscheduled(%in, %out) : !mega.buffer<8xbf16>, !mega.buffer<8xbf16> {
  // expected-error @below {{'mega.stage' op stands outside a phase; -mega-schedule-phases should have moved it}}
  mega.stage "s" {
  }
}

// -----

mega.program @no_barrier(%in, %out) : !mega.buffer<8xbf16>, !mega.buffer<8xbf16> {
  %a = mega.alloc "a" : !mega.buffer<8xbf16>
  mega.phase 0 {
    mega.stage "write" {
      %x = mega.load %in : !mega.buffer<8xbf16> -> tensor<8xbf16>
      // expected-note @below {{the earlier access}}
      mega.store %x, %a : tensor<8xbf16>, !mega.buffer<8xbf16>
    }
  }
  mega.phase 1 {
    // expected-error @below {{'mega.stage' op 'read' and 'write' have no barrier between them, expected one for the read after write of a}}
    mega.stage "read" {
      // expected-note @below {{the later access}}
      %x = mega.load %a : !mega.buffer<8xbf16> -> tensor<8xbf16>
      mega.store %x, %out : tensor<8xbf16>, !mega.buffer<8xbf16>
    }
  }
}

// -----

// Stages of one phase may run at the same time.
mega.program @one_phase(%in, %out) : !mega.buffer<8xbf16>, !mega.buffer<8xbf16> {
  mega.phase 0 {
    mega.stage "first" {
      %x = mega.load %in : !mega.buffer<8xbf16> -> tensor<8xbf16>
      // expected-note @below {{the earlier access}}
      mega.store %x, %out : tensor<8xbf16>, !mega.buffer<8xbf16>
    }
    // expected-error @below {{'mega.stage' op 'second' and 'first' have no barrier between them, expected one for the write after write of the output}}
    mega.stage "second" {
      %x = mega.load %in : !mega.buffer<8xbf16> -> tensor<8xbf16>
      // expected-note @below {{the later access}}
      mega.store %x, %out : tensor<8xbf16>, !mega.buffer<8xbf16>
    }
  }
}

// -----

// State counts like a buffer: this row must not appear while others read.
mega.state @latent : tensor<?x64xbf16>
mega.state @rope : tensor<?x16xbf16>
mega.program @state(%in, %out) : !mega.buffer<64xbf16>, !mega.buffer<64xbf16> {
  mega.phase 0 {
    mega.stage "attend" {
      %pos = mega.position
      %q = mega.load %in : !mega.buffer<64xbf16> -> tensor<1x64xbf16>
      %qa = mega.map(%a = %q) : (tensor<1x64xbf16>) -> tensor<1x64xf32> {
        mega.yield %a
      }
      // expected-note @below {{the earlier access}}
      %m, %s, %c = mega.latent_scores %qa, %q, %pos, @latent, @rope scale(1.0)
          : tensor<1x64xf32>, tensor<1x64xbf16>
          -> tensor<1x4xf32>, tensor<1x4xf32>, tensor<4x1x64xf32>
    }
    // expected-error @below {{'mega.stage' op 'append' and 'attend' have no barrier between them, expected one for the write after read of @latent}}
    mega.stage "append" {
      %pos = mega.position
      %x = mega.load %in : !mega.buffer<64xbf16> -> tensor<64xbf16>
      // expected-note @below {{the later access}}
      mega.cache_append %x, %pos, @latent : tensor<64xbf16>
    }
  }
}

// -----

// A barrier before is no barrier between.
mega.program @barrier_elsewhere(%in, %out) : !mega.buffer<8xbf16>, !mega.buffer<8xbf16> {
  %a = mega.alloc "a" : !mega.buffer<8xbf16>
  mega.grid_barrier covers []
  mega.phase 0 {
    mega.stage "write" {
      %x = mega.load %in : !mega.buffer<8xbf16> -> tensor<8xbf16>
      // expected-note @below {{the earlier access}}
      mega.store %x, %a : tensor<8xbf16>, !mega.buffer<8xbf16>
    }
    // expected-error @below {{have no barrier between them}}
    mega.stage "read" {
      // expected-note @below {{the later access}}
      %x = mega.load %a : !mega.buffer<8xbf16> -> tensor<8xbf16>
    }
  }
  mega.grid_barrier covers []
}

// -----

mega.program @never_written(%in, %out) : !mega.buffer<8xbf16>, !mega.buffer<8xbf16> {
  // expected-note @below {{the buffer}}
  %a = mega.alloc "a" : !mega.buffer<8xbf16>
  mega.phase 0 {
    mega.stage "read" {
      // expected-error @below {{'mega.load' op reads a, expected an earlier stage to write it}}
      %x = mega.load %a : !mega.buffer<8xbf16> -> tensor<8xbf16>
    }
  }
}

// -----

// Stages in the wrong order.
mega.program @swapped(%in, %out) : !mega.buffer<8xbf16>, !mega.buffer<8xbf16> {
  // expected-note @below {{the buffer}}
  %a = mega.alloc "a" : !mega.buffer<8xbf16>
  mega.phase 0 {
    mega.stage "read" {
      // expected-error @below {{'mega.load' op reads a, expected an earlier stage to write it}}
      %x = mega.load %a : !mega.buffer<8xbf16> -> tensor<8xbf16>
    }
  }
  mega.grid_barrier covers []
  mega.phase 1 {
    mega.stage "write" {
      %x = mega.load %in : !mega.buffer<8xbf16> -> tensor<8xbf16>
      // expected-note @below {{a later stage's write}}
      mega.store %x, %a : tensor<8xbf16>, !mega.buffer<8xbf16>
    }
  }
}
