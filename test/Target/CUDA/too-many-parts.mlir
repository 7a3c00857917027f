// SPDX-License-Identifier: Apache-2.0
// RUN: not megalithc %s --emit=cuda -o - 2>&1 | FileCheck %s
// The grid shares a list out by 32-bit products and quotients below 2^20.

// CHECK: too-many-parts.mlir:{{[0-9]+}}:{{[0-9]+}}: error: 'mega.{{[a-z]+}}' op has {{[0-9]+}} parts to share out over 132 CTAs, expected at most 1048575

mega.block @long(%x: tensor<2097152xbf16>) -> tensor<2097152xbf16> {
  %y = mega.map(%a = %x) : (tensor<2097152xbf16>) -> tensor<2097152xbf16> {
    %t = arith.addf %a, %a : f32
    mega.yield %t
  }
  mega.return %y : tensor<2097152xbf16>
}
