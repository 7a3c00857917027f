// SPDX-License-Identifier: Apache-2.0
// RUN: megalithc %s --emit=cuda -o - | FileCheck %s

// Weights may be called anything: keywords, and names that a number at the end
// would make equal.

// CHECK: mega::u8 *class_, *w, *w_1, *w_2;
mega.weight @"b.class" : tensor<64xbf16>
mega.weight @"a.w" : tensor<64xbf16>
mega.weight @w_1 : tensor<64xbf16>
mega.weight @"c.w" : tensor<64xbf16>
mega.block @names(%x: tensor<64xbf16>) -> tensor<64xbf16> {
  %a = mega.rms_norm %x, @"b.class" eps(1.0e-6) : tensor<64xbf16> -> tensor<64xbf16>
  %b = mega.rms_norm %a, @"a.w" eps(1.0e-6) : tensor<64xbf16> -> tensor<64xbf16>
  %c = mega.rms_norm %b, @w_1 eps(1.0e-6) : tensor<64xbf16> -> tensor<64xbf16>
  %d = mega.rms_norm %c, @"c.w" eps(1.0e-6) : tensor<64xbf16> -> tensor<64xbf16>
  mega.return %d : tensor<64xbf16>
}
