// SPDX-License-Identifier: Apache-2.0
// RUN: megalithc %s --arch=sm_80 --emit=cuda -o %t.cu
// RUN: %if nvrtc %{ megalithc %s --arch=sm_90a --emit=cubin -o %t.cubin %}

// A block of none.
mega.block @identity(%x: tensor<100xbf16>) -> tensor<100xbf16> {
  mega.return %x : tensor<100xbf16>
}
