// SPDX-License-Identifier: Apache-2.0
// RUN: megalithc %s --arch=sm_80 --emit=cuda -o %t.cu
// RUN: %if nvrtc %{ megalithc %s --arch=sm_90a --emit=cubin -o %t.cubin %}

// Sigmoid scores with an f32 bias that steers the choice, and gate weights that
// a map changes on their way to the experts.
mega.weight @router : tensor<12x128xbf16>
mega.weight @bias : tensor<12xf32>
mega.weight @gate : !mega.quant<12x128x64xi4, group = 64, scale = bf16, zero = bf16>
mega.weight @up : !mega.quant<12x128x64xi4, group = 64, scale = bf16, zero = bf16>
mega.weight @down : !mega.quant<12x64x128xi4, group = 32, scale = bf16, zero = bf16>
mega.block @sigmoid_router(%x: tensor<128xbf16>) -> tensor<128xbf16> {
  %logits = mega.linear %x, @router : tensor<128xbf16> -> tensor<12xbf16>
  %ids, %w = mega.router %logits sigmoid bias(@bias) scale(2.5) probe("experts")
      : tensor<12xbf16> -> tensor<5xi32>, tensor<5xf32>
  %w2 = mega.map(%a = %w) : (tensor<5xf32>) -> tensor<5xf32> {
    %s = math.sqrt %a : f32
    mega.yield %s
  }
  %y = mega.experts(%x, %ids, %w2) gate @gate up @up down @down
      : tensor<128xbf16>, tensor<5xi32>, tensor<5xf32> -> tensor<128xbf16> {
  ^bb0(%g: f32, %u: f32):
    %z = arith.constant 0.0 : f32
    %r = arith.maximumf %g, %z : f32
    %h = arith.mulf %r, %u : f32
    mega.yield %h
  }
  mega.return %y : tensor<128xbf16>
}
