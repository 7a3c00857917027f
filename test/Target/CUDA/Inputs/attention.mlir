// An attention layer with its experts, as small as they get: examples/make_block.py --pattern M.
mega.weight @"blocks.0.attn_norm" : tensor<128xbf16>
mega.weight @"blocks.0.moe_norm" : tensor<128xbf16>
mega.weight @"blocks.0.attn.q_proj" : !mega.quant<128x96xi4, group = 64, scale = bf16, zero = bf16>
mega.weight @"blocks.0.attn.kv_a" : !mega.quant<128x144xi4, group = 64, scale = bf16, zero = bf16>
mega.weight @"blocks.0.attn.kv_b" : !mega.quant<128x128xi4, group = 64, scale = bf16, zero = bf16>
mega.weight @"blocks.0.attn.o_proj" : !mega.quant<64x128xi4, group = 64, scale = bf16, zero = bf16>
mega.weight @"blocks.0.moe.router.weight" : tensor<4x128xbf16>
mega.weight @"blocks.0.moe.gate" : !mega.quant<4x128x64xi4, group = 64, scale = bf16, zero = bf16>
mega.weight @"blocks.0.moe.up" : !mega.quant<4x128x64xi4, group = 64, scale = bf16, zero = bf16>
mega.weight @"blocks.0.moe.down" : !mega.quant<4x64x128xi4, group = 64, scale = bf16, zero = bf16>
mega.weight @"blocks.0.moe.s_gate" : !mega.quant<1x128x64xi4, group = 64, scale = bf16, zero = bf16>
mega.weight @"blocks.0.moe.s_up" : !mega.quant<1x128x64xi4, group = 64, scale = bf16, zero = bf16>
mega.weight @"blocks.0.moe.s_down" : !mega.quant<1x64x128xi4, group = 64, scale = bf16, zero = bf16>

mega.state @"0.c_kv" : tensor<?x128xbf16>
mega.state @"0.k_rope" : tensor<?x16xbf16>

mega.block @attention(%x: tensor<128xbf16>) -> tensor<128xbf16> {
  %pos = mega.position

  // Layer 0: latent attention
  %n0 = mega.rms_norm %x, @"blocks.0.attn_norm" eps(1.0e-6) : tensor<128xbf16> -> tensor<128xbf16>
  %q0 = mega.linear %n0, @"blocks.0.attn.q_proj" : tensor<128xbf16> -> tensor<96xbf16>
  %kv0 = mega.linear %n0, @"blocks.0.attn.kv_a" : tensor<128xbf16> -> tensor<144xbf16>
  %qh0 = mega.reshape %q0 : tensor<96xbf16> -> tensor<2x48xbf16>
  %qr0 = mega.rope %qh0, %pos interleaved range(32, 16) theta(10000.0) : tensor<2x48xbf16> -> tensor<2x48xbf16>
  %c0 = mega.slice %kv0 from 0 : tensor<144xbf16> -> tensor<128xbf16>
  %r0 = mega.slice %kv0 from 128 : tensor<144xbf16> -> tensor<16xbf16>
  %rr0 = mega.rope %r0, %pos interleaved range(0, 16) theta(10000.0) : tensor<16xbf16> -> tensor<16xbf16>
  mega.cache_append %c0, %pos, @"0.c_kv" : tensor<128xbf16>
  mega.cache_append %rr0, %pos, @"0.k_rope" : tensor<16xbf16>
  %o0 = mega.latent_attention %qr0, %pos, @"0.c_kv", @"0.k_rope", @"blocks.0.attn.kv_b" scale(0.14433756729740643) absorb
      : tensor<2x48xbf16> -> tensor<2x32xbf16>
  %of0 = mega.reshape %o0 : tensor<2x32xbf16> -> tensor<64xbf16>
  %a0 = mega.linear %of0, @"blocks.0.attn.o_proj" : tensor<64xbf16> -> tensor<128xbf16>
  %h0 = mega.map(%a = %x, %b = %a0) : (tensor<128xbf16>, tensor<128xbf16>) -> tensor<128xbf16> {
    %sum = arith.addf %a, %b : f32
    mega.yield %sum
  }

  // Layer 0: mixture of experts
  %m0 = mega.rms_norm %h0, @"blocks.0.moe_norm" eps(1.0e-6) : tensor<128xbf16> -> tensor<128xbf16>
  %lg0 = mega.linear %m0, @"blocks.0.moe.router.weight" : tensor<128xbf16> -> tensor<4xbf16>
  %ids0, %w0 = mega.router %lg0 softmax renormalize(1.0e-9) scale(2.446) probe("0.experts")
      : tensor<4xbf16> -> tensor<2xi32>, tensor<2xf32>
  %e0 = mega.experts(%m0, %ids0, %w0) gate @"blocks.0.moe.gate" up @"blocks.0.moe.up" down @"blocks.0.moe.down" shared @"blocks.0.moe.s_gate", @"blocks.0.moe.s_up", @"blocks.0.moe.s_down"
      : tensor<128xbf16>, tensor<2xi32>, tensor<2xf32> -> tensor<128xbf16> {
  ^bb0(%g: f32, %u: f32):
    %one = arith.constant 1.0 : f32
    %neg = arith.negf %g : f32
    %exp = math.exp %neg : f32
    %den = arith.addf %exp, %one : f32
    %silu = arith.divf %g, %den : f32
    %h = arith.mulf %silu, %u : f32
    mega.yield %h
  }
  %x0 = mega.map(%a = %h0, %b = %e0) : (tensor<128xbf16>, tensor<128xbf16>) -> tensor<128xbf16> {
    %sum = arith.addf %a, %b : f32
    mega.yield %sum
  }

  mega.return %x0 : tensor<128xbf16>
}
