// SPDX-License-Identifier: Apache-2.0
// RUN: megalith-opt %s -mega-verify-stages -split-input-file -verify-diagnostics

// expected-error @below {{'mega.block' op belongs to level 0; -mega-form-stages should have lowered it}}
mega.block @b(%x: tensor<8xbf16>) -> tensor<8xbf16> {
  mega.return %x : tensor<8xbf16>
}

// -----

mega.program @unpartitioned(%in, %out) : !mega.buffer<8xbf16>, !mega.buffer<8xbf16> {
  // expected-error @below {{'mega.stage' op has no tile list; -mega-partition should have set it}}
  mega.stage "s" {
  }
}

// -----

mega.program @no_anchor(%in, %out) : !mega.buffer<8xbf16>, !mega.buffer<8xbf16> {
  // expected-error @below {{'mega.stage' op has 0 tiles, expected an anchor}}
  mega.stage "s" tiles(0) {
  }
}

// -----

mega.program @no_relation(%in, %out) : !mega.buffer<8xbf16>, !mega.buffer<8xbf16> {
  mega.stage "s" tiles(8) {
    // expected-error @below {{'mega.load' op has no access relation; -mega-partition should have set it}}
    %x = mega.load %in : !mega.buffer<8xbf16> -> tensor<8xbf16>
    %y = mega.elementwise %x tiling(<begin = 0, count = 8, extent = 1>) : tensor<8xbf16> -> tensor<8xbf16>
  }
}

// -----

mega.program @no_store_relation(%in, %out) : !mega.buffer<8xbf16>, !mega.buffer<8xbf16> {
  mega.stage "s" tiles(8) {
    %x = mega.load %in access(<affine_map<(d0)[s0] -> (d0 + s0)>, [1]>)
        : !mega.buffer<8xbf16> -> tensor<8xbf16>
    %y = mega.elementwise %x tiling(<begin = 0, count = 8, extent = 1>) : tensor<8xbf16> -> tensor<8xbf16>
    // expected-error @below {{'mega.store' op has no access relation; -mega-partition should have set it}}
    mega.store %y, %out : tensor<8xbf16>, !mega.buffer<8xbf16>
  }
}

// -----

// A relation that somebody wrote must be what the stage does.
#at = affine_map<(d0)[s0] -> (d0 + s0)>
mega.weight @w : tensor<8x8xbf16>
mega.program @false_relation(%in, %out) : !mega.buffer<8xbf16>, !mega.buffer<8xbf16> {
  mega.stage "s" tiles(8) {
    // expected-error @below {{'mega.load' op has access relation #mega.access<affine_map<(d0)[s0] -> (d0 + s0)>, [1]>, expected #mega.access<affine_map<(d0)[s0] -> (s0)>, [8]>}}
    %x = mega.load %in access(<#at, [1]>) : !mega.buffer<8xbf16> -> tensor<8xbf16>
    %y = mega.linear %x, @w tiling(<begin = 0, count = 8, extent = 1>) : tensor<8xbf16> -> tensor<8xbf16>
    mega.store %y, %out access(<#at, [1]>) : tensor<8xbf16>, !mega.buffer<8xbf16>
  }
}
