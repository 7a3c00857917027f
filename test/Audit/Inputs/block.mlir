// SPDX-License-Identifier: Apache-2.0
// One of each: a norm, a state, two caches, routed experts and a shared one.
mega.weight @norm : tensor<64xbf16>
mega.weight @taps : tensor<64x2xbf16>
mega.weight @q : !mega.quant<64x96xi4, group = 32, scale = bf16, zero = bf16>
mega.weight @kv_a : !mega.quant<64x48xi4, group = 32, scale = bf16, zero = bf16>
mega.weight @kv_b : !mega.quant<32x128xi4, group = 32, scale = bf16, zero = bf16>
mega.weight @router : tensor<4x64xbf16>
mega.weight @gate : !mega.quant<4x64x32xi4, group = 32, scale = bf16, zero = bf16>
mega.weight @up : !mega.quant<4x64x32xi4, group = 32, scale = bf16, zero = bf16>
mega.weight @down : !mega.quant<4x32x64xi4, group = 32, scale = bf16, zero = bf16>
mega.weight @s_gate : !mega.quant<1x64x32xi4, group = 32, scale = bf16, zero = bf16>
mega.weight @s_up : !mega.quant<1x64x32xi4, group = 32, scale = bf16, zero = bf16>
mega.weight @s_down : !mega.quant<1x32x64xi4, group = 32, scale = bf16, zero = bf16>
mega.state @conv : tensor<1x64xbf16>
mega.state @latent : tensor<?x32xbf16>
mega.state @rope : tensor<?x16xbf16>

mega.block @tiny(%x: tensor<64xbf16>) -> tensor<64xbf16> {
  %pos = mega.position
  %n = mega.rms_norm %x, @norm eps(1.0e-6) : tensor<64xbf16> -> tensor<64xbf16>
  %c = mega.short_conv %n, @taps, @conv : tensor<64xbf16> -> tensor<64xf32>
  %h = mega.map(%a = %c, %b = %x) : (tensor<64xf32>, tensor<64xbf16>)
      -> tensor<64xbf16> {
    %s = arith.addf %a, %b : f32
    mega.yield %s
  }
  %qv = mega.linear %h, @q : tensor<64xbf16> -> tensor<96xbf16>
  %qh = mega.reshape %qv : tensor<96xbf16> -> tensor<2x48xbf16>
  %qr = mega.rope %qh, %pos half range(32, 16) theta(10000.0)
      : tensor<2x48xbf16> -> tensor<2x48xbf16>
  %kv = mega.linear %h, @kv_a : tensor<64xbf16> -> tensor<48xbf16>
  %l = mega.slice %kv from 0 : tensor<48xbf16> -> tensor<32xbf16>
  %k = mega.slice %kv from 32 : tensor<48xbf16> -> tensor<16xbf16>
  %kr = mega.rope %k, %pos half range(0, 16) theta(10000.0)
      : tensor<16xbf16> -> tensor<16xbf16>
  mega.cache_append %l, %pos, @latent : tensor<32xbf16>
  mega.cache_append %kr, %pos, @rope : tensor<16xbf16>
  %o = mega.latent_attention %qr, %pos, @latent, @rope, @kv_b scale(0.144) absorb
      : tensor<2x48xbf16> -> tensor<2x32xbf16>
  %ov = mega.reshape %o : tensor<2x32xbf16> -> tensor<64xbf16>
  %logits = mega.linear %ov, @router : tensor<64xbf16> -> tensor<4xbf16>
  %ids, %w = mega.router %logits softmax scale(1.0) probe("experts")
      : tensor<4xbf16> -> tensor<2xi32>, tensor<2xf32>
  %e = mega.experts(%ov, %ids, %w) gate @gate up @up down @down
      shared @s_gate, @s_up, @s_down
      : tensor<64xbf16>, tensor<2xi32>, tensor<2xf32> -> tensor<64xbf16> {
  ^bb0(%g: f32, %u: f32):
    %m = arith.mulf %g, %u : f32
    mega.yield %m
  }
  mega.return %e : tensor<64xbf16>
}
