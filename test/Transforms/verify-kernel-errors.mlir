// SPDX-License-Identifier: Apache-2.0
// RUN: megalith-opt %s -mega-verify-kernel -split-input-file -verify-diagnostics

mega.kernel @no_offset(%in, %out) : !mega.buffer<8xbf16>, !mega.buffer<8xbf16>
    attributes {target = #mega.target<arch = "sm_90a", ctas = 4, threads = 256, shared_bytes = 131072>,
                weight_bytes = 0, weight_layout = [], workspace_bytes = 1024} {
  // expected-error @below {{'mega.alloc' op has no offset; -mega-plan-memory should have set it}}
  %a = mega.alloc "a" : !mega.buffer<8xbf16>
}

// -----

mega.kernel @misaligned(%in, %out) : !mega.buffer<8xbf16>, !mega.buffer<8xbf16>
    attributes {target = #mega.target<arch = "sm_90a", ctas = 4, threads = 256, shared_bytes = 131072>,
                weight_bytes = 0, weight_layout = [], workspace_bytes = 1024} {
  // expected-error @below {{'mega.alloc' op has offset 264, expected a multiple of 16}}
  %a = mega.alloc "a" offset(264) : !mega.buffer<8xbf16>
}

// -----

mega.kernel @outside(%in, %out) : !mega.buffer<8xbf16>, !mega.buffer<8xbf16>
    attributes {target = #mega.target<arch = "sm_90a", ctas = 4, threads = 256, shared_bytes = 131072>,
                weight_bytes = 0, weight_layout = [], workspace_bytes = 1024} {
  // expected-error @below {{'mega.alloc' op ends at byte 1040, expected at most the workspace's 1024}}
  %a = mega.alloc "a" offset(1008) : !mega.buffer<8xf32>
}

// -----

// `a` is read in the phase in which `b` is written.
mega.kernel @both_live(%in, %out) : !mega.buffer<8xbf16>, !mega.buffer<8xbf16>
    attributes {target = #mega.target<arch = "sm_90a", ctas = 4, threads = 256, shared_bytes = 131072>,
                weight_bytes = 0, weight_layout = [], workspace_bytes = 1024} {
  // expected-note @below {{the other buffer}}
  %a = mega.alloc "a" offset(256) : !mega.buffer<16xbf16>
  // expected-error @below {{'mega.alloc' op 'b' shares bytes with 'a' while both are live, expected a barrier between or disjoint bytes}}
  %b = mega.alloc "b" offset(272) : !mega.buffer<8xbf16>
  mega.phase 0 {
    mega.stage "0" {
      %x = mega.load %in : !mega.buffer<8xbf16> -> tensor<8xbf16>
      mega.store %x, %b : tensor<8xbf16>, !mega.buffer<8xbf16>
      %y = mega.load %a : !mega.buffer<16xbf16> -> tensor<16xbf16>
    }
  }
}

// -----

// A probe is live to the end of the step.
mega.kernel @probe(%in, %out) : !mega.buffer<8xbf16>, !mega.buffer<8xbf16>
    attributes {target = #mega.target<arch = "sm_90a", ctas = 4, threads = 256, shared_bytes = 131072>,
                weight_bytes = 0, weight_layout = [], workspace_bytes = 1024} {
  // expected-note @below {{the other buffer}}
  %a = mega.alloc "a" probe("kept") offset(256) : !mega.buffer<8xbf16>
  // expected-error @below {{'b' shares bytes with 'a' while both are live}}
  %b = mega.alloc "b" offset(256) : !mega.buffer<8xbf16>
  mega.phase 0 {
    mega.stage "0" {
      %x = mega.load %in : !mega.buffer<8xbf16> -> tensor<8xbf16>
      mega.store %x, %a : tensor<8xbf16>, !mega.buffer<8xbf16>
    }
  }
  mega.grid_barrier covers []
  mega.phase 1 {
    mega.stage "1" {
      %x = mega.load %in : !mega.buffer<8xbf16> -> tensor<8xbf16>
      mega.store %x, %b : tensor<8xbf16>, !mega.buffer<8xbf16>
    }
  }
}

// -----

// Phases that no barrier divides may run at the same time.
mega.kernel @no_barrier(%in, %out) : !mega.buffer<8xbf16>, !mega.buffer<8xbf16>
    attributes {target = #mega.target<arch = "sm_90a", ctas = 4, threads = 256, shared_bytes = 131072>,
                weight_bytes = 0, weight_layout = [], workspace_bytes = 1024} {
  // expected-note @below {{the other buffer}}
  %a = mega.alloc "a" offset(256) : !mega.buffer<8xbf16>
  // expected-error @below {{'b' shares bytes with 'a' while both are live}}
  %b = mega.alloc "b" offset(256) : !mega.buffer<8xbf16>
  mega.phase 0 {
    mega.stage "0" {
      %x = mega.load %in : !mega.buffer<8xbf16> -> tensor<8xbf16>
      mega.store %x, %a : tensor<8xbf16>, !mega.buffer<8xbf16>
    }
  }
  mega.phase 1 {
    mega.stage "1" {
      %x = mega.load %in : !mega.buffer<8xbf16> -> tensor<8xbf16>
      mega.store %x, %b : tensor<8xbf16>, !mega.buffer<8xbf16>
    }
  }
}

// -----

mega.kernel @on_the_barrier(%in, %out) : !mega.buffer<8xbf16>, !mega.buffer<8xbf16>
    attributes {target = #mega.target<arch = "sm_90a", ctas = 4, threads = 256, shared_bytes = 131072>,
                weight_bytes = 0, weight_layout = [], workspace_bytes = 1024} {
  // expected-error @below {{'mega.alloc' op has offset 0, expected at least 256, where the grid barrier's counter ends}}
  %a = mega.alloc "a" offset(0) : !mega.buffer<8xbf16>
}

// -----

// Ranges that a barrier divides may share; adjacent bytes are disjoint.
mega.kernel @sound(%in, %out) : !mega.buffer<8xbf16>, !mega.buffer<8xbf16>
    attributes {target = #mega.target<arch = "sm_90a", ctas = 4, threads = 256, shared_bytes = 131072>,
                weight_bytes = 0, weight_layout = [], workspace_bytes = 1024} {
  %a = mega.alloc "a" offset(256) : !mega.buffer<8xbf16>
  %b = mega.alloc "b" offset(256) : !mega.buffer<8xbf16>
  %c = mega.alloc "c" offset(272) : !mega.buffer<8xbf16>
  mega.phase 0 {
    mega.stage "0" {
      %x = mega.load %in : !mega.buffer<8xbf16> -> tensor<8xbf16>
      mega.store %x, %a : tensor<8xbf16>, !mega.buffer<8xbf16>
      mega.store %x, %c : tensor<8xbf16>, !mega.buffer<8xbf16>
    }
  }
  mega.grid_barrier covers []
  mega.phase 1 {
    mega.stage "1" {
      %x = mega.load %in : !mega.buffer<8xbf16> -> tensor<8xbf16>
      mega.store %x, %b : tensor<8xbf16>, !mega.buffer<8xbf16>
    }
  }
}

// -----

mega.kernel @counters_unplanned(%in, %out) : !mega.buffer<8xbf16>, !mega.buffer<8xbf16>
    attributes {target = #mega.target<arch = "sm_90a", ctas = 4, threads = 256, shared_bytes = 131072>,
                weight_bytes = 0, weight_layout = [], workspace_bytes = 1024} {
  // expected-error @below {{'mega.counters' op has no offset; -mega-plan-memory should have set it}}
  %c = mega.counters "c" count(1) : !mega.counters
}

// -----

mega.kernel @counters_on_the_barrier(%in, %out) : !mega.buffer<8xbf16>, !mega.buffer<8xbf16>
    attributes {target = #mega.target<arch = "sm_90a", ctas = 4, threads = 256, shared_bytes = 131072>,
                weight_bytes = 0, weight_layout = [], workspace_bytes = 1024} {
  // expected-error @below {{'mega.counters' op has offset 128, expected at least 256, where the grid barrier's counter ends}}
  %c = mega.counters "c" count(1) offset(128) : !mega.counters
}

// -----

mega.kernel @counters_outside(%in, %out) : !mega.buffer<8xbf16>, !mega.buffer<8xbf16>
    attributes {target = #mega.target<arch = "sm_90a", ctas = 4, threads = 256, shared_bytes = 131072>,
                weight_bytes = 0, weight_layout = [], workspace_bytes = 1024} {
  // expected-error @below {{'mega.counters' op ends at byte 1152, expected at most the workspace's 1024}}
  %c = mega.counters "c" count(2) offset(896) : !mega.counters
}

// -----

mega.kernel @counters_in_a_buffer(%in, %out) : !mega.buffer<8xbf16>, !mega.buffer<8xbf16>
    attributes {target = #mega.target<arch = "sm_90a", ctas = 4, threads = 256, shared_bytes = 131072>,
                weight_bytes = 0, weight_layout = [], workspace_bytes = 1024} {
  // expected-note @below {{the other}}
  %a = mega.alloc "a" offset(400) : !mega.buffer<8xbf16>
  // expected-error @below {{'mega.counters' op 'c' shares bytes with 'a', expected disjoint bytes}}
  %c = mega.counters "c" count(2) offset(256) : !mega.counters
}

// -----

mega.kernel @counters_in_counters(%in, %out) : !mega.buffer<8xbf16>, !mega.buffer<8xbf16>
    attributes {target = #mega.target<arch = "sm_90a", ctas = 4, threads = 256, shared_bytes = 131072>,
                weight_bytes = 0, weight_layout = [], workspace_bytes = 1024} {
  // expected-note @below {{the other}}
  %c = mega.counters "c" count(2) offset(256) : !mega.counters
  // expected-error @below {{'mega.counters' op 'd' shares bytes with 'c', expected disjoint bytes}}
  %d = mega.counters "d" count(1) offset(384) : !mega.counters
}
