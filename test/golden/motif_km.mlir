// Two layers, two shared experts; it matches test/golden/motif_km.
mega.weight @"blocks.0.attn_norm" : tensor<384xbf16>
mega.weight @"blocks.0.moe_norm" : tensor<384xbf16>
mega.weight @"blocks.0.attn.conv_w" : tensor<3x256x4xbf16>
mega.weight @"blocks.0.attn.q_proj" : !mega.quant<384x256xi4, group = 128, scale = bf16, zero = bf16>
mega.weight @"blocks.0.attn.k_proj" : !mega.quant<384x256xi4, group = 128, scale = bf16, zero = bf16>
mega.weight @"blocks.0.attn.v_proj" : !mega.quant<384x256xi4, group = 128, scale = bf16, zero = bf16>
mega.weight @"blocks.0.attn.g_proj" : !mega.quant<384x256xi4, group = 128, scale = bf16, zero = bf16>
mega.weight @"blocks.0.attn.beta_proj.weight" : tensor<2x384xbf16>
mega.weight @"blocks.0.attn.o_proj" : !mega.quant<256x384xi4, group = 128, scale = bf16, zero = bf16>
mega.weight @"blocks.0.moe.router.weight" : tensor<16x384xbf16>
mega.weight @"blocks.0.moe.gate" : !mega.quant<16x384x256xi4, group = 128, scale = bf16, zero = bf16>
mega.weight @"blocks.0.moe.up" : !mega.quant<16x384x256xi4, group = 128, scale = bf16, zero = bf16>
mega.weight @"blocks.0.moe.down" : !mega.quant<16x256x384xi4, group = 128, scale = bf16, zero = bf16>
mega.weight @"blocks.0.moe.s_gate" : !mega.quant<2x384x256xi4, group = 128, scale = bf16, zero = bf16>
mega.weight @"blocks.0.moe.s_up" : !mega.quant<2x384x256xi4, group = 128, scale = bf16, zero = bf16>
mega.weight @"blocks.0.moe.s_down" : !mega.quant<2x256x384xi4, group = 128, scale = bf16, zero = bf16>
mega.weight @"blocks.1.attn_norm" : tensor<384xbf16>
mega.weight @"blocks.1.moe_norm" : tensor<384xbf16>
mega.weight @"blocks.1.attn.q_proj" : !mega.quant<384x576xi4, group = 128, scale = bf16, zero = bf16>
mega.weight @"blocks.1.attn.kv_a" : !mega.quant<384x320xi4, group = 128, scale = bf16, zero = bf16>
mega.weight @"blocks.1.attn.kv_b" : !mega.quant<256x768xi4, group = 128, scale = bf16, zero = bf16>
mega.weight @"blocks.1.attn.o_proj" : !mega.quant<384x384xi4, group = 128, scale = bf16, zero = bf16>
mega.weight @"blocks.1.moe.router.weight" : tensor<16x384xbf16>
mega.weight @"blocks.1.moe.gate" : !mega.quant<16x384x256xi4, group = 128, scale = bf16, zero = bf16>
mega.weight @"blocks.1.moe.up" : !mega.quant<16x384x256xi4, group = 128, scale = bf16, zero = bf16>
mega.weight @"blocks.1.moe.down" : !mega.quant<16x256x384xi4, group = 128, scale = bf16, zero = bf16>
mega.weight @"blocks.1.moe.s_gate" : !mega.quant<2x384x256xi4, group = 128, scale = bf16, zero = bf16>
mega.weight @"blocks.1.moe.s_up" : !mega.quant<2x384x256xi4, group = 128, scale = bf16, zero = bf16>
mega.weight @"blocks.1.moe.s_down" : !mega.quant<2x256x384xi4, group = 128, scale = bf16, zero = bf16>

mega.state @"0.S" : tensor<2x128x128xf32>
mega.state @"0.cq" : tensor<3x256xbf16>
mega.state @"0.ck" : tensor<3x256xbf16>
mega.state @"0.cv" : tensor<3x256xbf16>
mega.state @"1.c_kv" : tensor<?x256xbf16>
mega.state @"1.k_rope" : tensor<?x64xbf16>

mega.block @motif_km(%x: tensor<384xbf16>) -> tensor<384xbf16> {
  %pos = mega.position

  // Layer 0: gated delta rule
  %n0 = mega.rms_norm %x, @"blocks.0.attn_norm" eps(1.0e-6) : tensor<384xbf16> -> tensor<384xbf16>
  %q0 = mega.linear %n0, @"blocks.0.attn.q_proj" : tensor<384xbf16> -> tensor<256xbf16>
  %qconv0 = mega.short_conv %q0, @"blocks.0.attn.conv_w"[0], @"0.cq" : tensor<256xbf16> -> tensor<256xf32>
  %qact0 = mega.map(%z = %qconv0) : (tensor<256xf32>) -> tensor<256xbf16> {
    %one = arith.constant 1.0 : f32
    %neg = arith.negf %z : f32
    %exp = math.exp %neg : f32
    %den = arith.addf %exp, %one : f32
    %silu = arith.divf %z, %den : f32
    mega.yield %silu
  }
  %qhead0 = mega.reshape %qact0 : tensor<256xbf16> -> tensor<2x128xbf16>
  %k0 = mega.linear %n0, @"blocks.0.attn.k_proj" : tensor<384xbf16> -> tensor<256xbf16>
  %kconv0 = mega.short_conv %k0, @"blocks.0.attn.conv_w"[1], @"0.ck" : tensor<256xbf16> -> tensor<256xf32>
  %kact0 = mega.map(%z = %kconv0) : (tensor<256xf32>) -> tensor<256xbf16> {
    %one = arith.constant 1.0 : f32
    %neg = arith.negf %z : f32
    %exp = math.exp %neg : f32
    %den = arith.addf %exp, %one : f32
    %silu = arith.divf %z, %den : f32
    mega.yield %silu
  }
  %khead0 = mega.reshape %kact0 : tensor<256xbf16> -> tensor<2x128xbf16>
  %v0 = mega.linear %n0, @"blocks.0.attn.v_proj" : tensor<384xbf16> -> tensor<256xbf16>
  %vconv0 = mega.short_conv %v0, @"blocks.0.attn.conv_w"[2], @"0.cv" : tensor<256xbf16> -> tensor<256xf32>
  %vact0 = mega.map(%z = %vconv0) : (tensor<256xf32>) -> tensor<256xbf16> {
    %one = arith.constant 1.0 : f32
    %neg = arith.negf %z : f32
    %exp = math.exp %neg : f32
    %den = arith.addf %exp, %one : f32
    %silu = arith.divf %z, %den : f32
    mega.yield %silu
  }
  %vhead0 = mega.reshape %vact0 : tensor<256xbf16> -> tensor<2x128xbf16>
  %qs0 = mega.map(%z = %qhead0) : (tensor<2x128xbf16>) -> tensor<2x128xf32> {
    %s = arith.constant 0.08838834764831845 : f32
    %scaled = arith.mulf %z, %s : f32
    mega.yield %scaled
  }
  %f0 = mega.linear %n0, @"blocks.0.attn.g_proj" : tensor<384xbf16> -> tensor<256xbf16>
  // exp(-softplus(f)) = sigmoid(-f)
  %d0 = mega.map(%z = %f0) : (tensor<256xbf16>) -> tensor<256xf32> {
    %m = arith.negf %z : f32
    %one = arith.constant 1.0 : f32
    %neg = arith.negf %m : f32
    %exp = math.exp %neg : f32
    %den = arith.addf %exp, %one : f32
    %sig = arith.divf %one, %den : f32
    mega.yield %sig
  }
  %decay0 = mega.reshape %d0 : tensor<256xf32> -> tensor<2x128xf32>
  %bl0 = mega.linear %n0, @"blocks.0.attn.beta_proj.weight" : tensor<384xbf16> -> tensor<2xbf16>
  %beta0 = mega.map(%z = %bl0) : (tensor<2xbf16>) -> tensor<2xf32> {
    %one = arith.constant 1.0 : f32
    %neg = arith.negf %z : f32
    %exp = math.exp %neg : f32
    %den = arith.addf %exp, %one : f32
    %sig = arith.divf %one, %den : f32
    mega.yield %sig
  }
  %o0 = mega.delta_rule %qs0, %khead0, %vhead0, %beta0, @"0.S" decay(channel) %decay0
      : tensor<2x128xf32>, tensor<2x128xbf16>, tensor<2x128xbf16>, tensor<2xf32>, tensor<2x128xf32> -> tensor<2x128xbf16>
  %of0 = mega.reshape %o0 : tensor<2x128xbf16> -> tensor<256xbf16>
  %a0 = mega.linear %of0, @"blocks.0.attn.o_proj" : tensor<256xbf16> -> tensor<384xbf16>
  %h0 = mega.map(%a = %x, %b = %a0) : (tensor<384xbf16>, tensor<384xbf16>) -> tensor<384xbf16> {
    %sum = arith.addf %a, %b : f32
    mega.yield %sum
  }

  // Layer 0: mixture of experts
  %m0 = mega.rms_norm %h0, @"blocks.0.moe_norm" eps(1.0e-6) : tensor<384xbf16> -> tensor<384xbf16>
  %lg0 = mega.linear %m0, @"blocks.0.moe.router.weight" : tensor<384xbf16> -> tensor<16xbf16>
  %ids0, %w0 = mega.router %lg0 softmax renormalize(1.0e-9) scale(1.0) probe("0.experts")
      : tensor<16xbf16> -> tensor<4xi32>, tensor<4xf32>
  %e0 = mega.experts(%m0, %ids0, %w0) gate @"blocks.0.moe.gate" up @"blocks.0.moe.up" down @"blocks.0.moe.down" shared @"blocks.0.moe.s_gate", @"blocks.0.moe.s_up", @"blocks.0.moe.s_down"
      : tensor<384xbf16>, tensor<4xi32>, tensor<4xf32> -> tensor<384xbf16> {
  ^bb0(%g: f32, %u: f32):
    %one = arith.constant 1.0 : f32
    %neg = arith.negf %g : f32
    %exp = math.exp %neg : f32
    %den = arith.addf %exp, %one : f32
    %silu = arith.divf %g, %den : f32
    %h = arith.mulf %silu, %u : f32
    mega.yield %h
  }
  %x0 = mega.map(%a = %h0, %b = %e0) : (tensor<384xbf16>, tensor<384xbf16>) -> tensor<384xbf16> {
    %sum = arith.addf %a, %b : f32
    mega.yield %sum
  }

  // Layer 1: latent attention
  %n1 = mega.rms_norm %x0, @"blocks.1.attn_norm" eps(1.0e-6) : tensor<384xbf16> -> tensor<384xbf16>
  %q1 = mega.linear %n1, @"blocks.1.attn.q_proj" : tensor<384xbf16> -> tensor<576xbf16>
  %kv1 = mega.linear %n1, @"blocks.1.attn.kv_a" : tensor<384xbf16> -> tensor<320xbf16>
  %qh1 = mega.reshape %q1 : tensor<576xbf16> -> tensor<3x192xbf16>
  %qr1 = mega.rope %qh1, %pos interleaved range(128, 64) theta(10000.0) : tensor<3x192xbf16> -> tensor<3x192xbf16>
  %c1 = mega.slice %kv1 from 0 : tensor<320xbf16> -> tensor<256xbf16>
  %r1 = mega.slice %kv1 from 256 : tensor<320xbf16> -> tensor<64xbf16>
  %rr1 = mega.rope %r1, %pos interleaved range(0, 64) theta(10000.0) : tensor<64xbf16> -> tensor<64xbf16>
  mega.cache_append %c1, %pos, @"1.c_kv" : tensor<256xbf16>
  mega.cache_append %rr1, %pos, @"1.k_rope" : tensor<64xbf16>
  %o1 = mega.latent_attention %qr1, %pos, @"1.c_kv", @"1.k_rope", @"blocks.1.attn.kv_b" scale(0.07216878364870322) absorb
      : tensor<3x192xbf16> -> tensor<3x128xbf16>
  %of1 = mega.reshape %o1 : tensor<3x128xbf16> -> tensor<384xbf16>
  %a1 = mega.linear %of1, @"blocks.1.attn.o_proj" : tensor<384xbf16> -> tensor<384xbf16>
  %h1 = mega.map(%a = %x0, %b = %a1) : (tensor<384xbf16>, tensor<384xbf16>) -> tensor<384xbf16> {
    %sum = arith.addf %a, %b : f32
    mega.yield %sum
  }

  // Layer 1: mixture of experts
  %m1 = mega.rms_norm %h1, @"blocks.1.moe_norm" eps(1.0e-6) : tensor<384xbf16> -> tensor<384xbf16>
  %lg1 = mega.linear %m1, @"blocks.1.moe.router.weight" : tensor<384xbf16> -> tensor<16xbf16>
  %ids1, %w1 = mega.router %lg1 softmax renormalize(1.0e-9) scale(1.0) probe("1.experts")
      : tensor<16xbf16> -> tensor<4xi32>, tensor<4xf32>
  %e1 = mega.experts(%m1, %ids1, %w1) gate @"blocks.1.moe.gate" up @"blocks.1.moe.up" down @"blocks.1.moe.down" shared @"blocks.1.moe.s_gate", @"blocks.1.moe.s_up", @"blocks.1.moe.s_down"
      : tensor<384xbf16>, tensor<4xi32>, tensor<4xf32> -> tensor<384xbf16> {
  ^bb0(%g: f32, %u: f32):
    %one = arith.constant 1.0 : f32
    %neg = arith.negf %g : f32
    %exp = math.exp %neg : f32
    %den = arith.addf %exp, %one : f32
    %silu = arith.divf %g, %den : f32
    %h = arith.mulf %silu, %u : f32
    mega.yield %h
  }
  %x1 = mega.map(%a = %h1, %b = %e1) : (tensor<384xbf16>, tensor<384xbf16>) -> tensor<384xbf16> {
    %sum = arith.addf %a, %b : f32
    mega.yield %sum
  }

  mega.return %x1 : tensor<384xbf16>
}
