// SPDX-License-Identifier: Apache-2.0
// RUN: megalith-opt %s --split-input-file --verify-diagnostics

// expected-error@+1 {{'mega.kernel' op has arguments ('!mega.buffer<64xbf16>'), expected the input and the output buffer}}
mega.kernel @k(%in) : !mega.buffer<64xbf16>
    attributes {target = #mega.target<arch = "sm_90a", ctas = 132, threads = 256, shared_bytes = 131072>,
                weight_bytes = 0, weight_layout = [], workspace_bytes = 0} {
}

// -----

// expected-error@+1 {{has 1 arguments and 2 types, expected as many}}
mega.kernel @k(%in) : !mega.buffer<64xbf16>, !mega.buffer<64xbf16> {
}

// -----

// expected-error@+1 {{'mega.kernel' op requires attribute 'target'}}
mega.kernel @k(%in, %out) : !mega.buffer<64xbf16>, !mega.buffer<64xbf16> {
}

// -----

// Phases and barriers have their place.
// expected-error@+1 {{'mega.phase' op expects parent op to be one of 'mega.program, mega.kernel'}}
mega.phase 0 {
}

// -----

// expected-error@+1 {{'mega.grid_barrier' op expects parent op to be one of 'mega.program, mega.kernel'}}
mega.grid_barrier covers []

// -----

// expected-error@+1 {{target has arch 'gfx90a', expected one like sm_90a}}
module attributes {mega.target = #mega.target<arch = "gfx90a", ctas = 132, threads = 256, shared_bytes = 131072>} {}

// -----

// expected-error@+1 {{target has 0 ctas, expected a positive number}}
module attributes {mega.target = #mega.target<arch = "sm_90a", ctas = 0, threads = 256, shared_bytes = 131072>} {}

// -----

// expected-error@+1 {{target has 100 threads, expected a multiple of 128 up to 1024}}
module attributes {mega.target = #mega.target<arch = "sm_90a", ctas = 132, threads = 100, shared_bytes = 131072>} {}

// -----

// expected-error@+1 {{target has 2048 threads, expected a multiple of 128 up to 1024}}
module attributes {mega.target = #mega.target<arch = "sm_90a", ctas = 132, threads = 2048, shared_bytes = 131072>} {}

// -----

// expected-error@+1 {{target has 1024 bytes of shared memory, expected at least 16384}}
module attributes {mega.target = #mega.target<arch = "sm_90a", ctas = 132, threads = 256, shared_bytes = 1024>} {}
