// The Kimi-Linear W4A16 decode motif: three KDA layers, one MLA layer.
mega.weight @"blocks.0.attn_norm" : tensor<2304xbf16>
mega.weight @"blocks.0.moe_norm" : tensor<2304xbf16>
mega.weight @"blocks.0.attn.conv_w" : tensor<3x4096x4xbf16>
mega.weight @"blocks.0.attn.q_proj" : !mega.quant<2304x4096xi4, group = 128, scale = bf16, zero = bf16>
mega.weight @"blocks.0.attn.k_proj" : !mega.quant<2304x4096xi4, group = 128, scale = bf16, zero = bf16>
mega.weight @"blocks.0.attn.v_proj" : !mega.quant<2304x4096xi4, group = 128, scale = bf16, zero = bf16>
mega.weight @"blocks.0.attn.g_proj" : !mega.quant<2304x4096xi4, group = 128, scale = bf16, zero = bf16>
mega.weight @"blocks.0.attn.beta_proj.weight" : tensor<32x2304xbf16>
mega.weight @"blocks.0.attn.o_proj" : !mega.quant<4096x2304xi4, group = 128, scale = bf16, zero = bf16>
mega.weight @"blocks.0.moe.router.weight" : tensor<64x2304xbf16>
mega.weight @"blocks.0.moe.gate" : !mega.quant<64x2304x1024xi4, group = 128, scale = bf16, zero = bf16>
mega.weight @"blocks.0.moe.up" : !mega.quant<64x2304x1024xi4, group = 128, scale = bf16, zero = bf16>
mega.weight @"blocks.0.moe.down" : !mega.quant<64x1024x2304xi4, group = 128, scale = bf16, zero = bf16>
mega.weight @"blocks.0.moe.s_gate" : !mega.quant<1x2304x1024xi4, group = 128, scale = bf16, zero = bf16>
mega.weight @"blocks.0.moe.s_up" : !mega.quant<1x2304x1024xi4, group = 128, scale = bf16, zero = bf16>
mega.weight @"blocks.0.moe.s_down" : !mega.quant<1x1024x2304xi4, group = 128, scale = bf16, zero = bf16>
mega.weight @"blocks.1.attn_norm" : tensor<2304xbf16>
mega.weight @"blocks.1.moe_norm" : tensor<2304xbf16>
mega.weight @"blocks.1.attn.conv_w" : tensor<3x4096x4xbf16>
mega.weight @"blocks.1.attn.q_proj" : !mega.quant<2304x4096xi4, group = 128, scale = bf16, zero = bf16>
mega.weight @"blocks.1.attn.k_proj" : !mega.quant<2304x4096xi4, group = 128, scale = bf16, zero = bf16>
mega.weight @"blocks.1.attn.v_proj" : !mega.quant<2304x4096xi4, group = 128, scale = bf16, zero = bf16>
mega.weight @"blocks.1.attn.g_proj" : !mega.quant<2304x4096xi4, group = 128, scale = bf16, zero = bf16>
mega.weight @"blocks.1.attn.beta_proj.weight" : tensor<32x2304xbf16>
mega.weight @"blocks.1.attn.o_proj" : !mega.quant<4096x2304xi4, group = 128, scale = bf16, zero = bf16>
mega.weight @"blocks.1.moe.router.weight" : tensor<64x2304xbf16>
mega.weight @"blocks.1.moe.gate" : !mega.quant<64x2304x1024xi4, group = 128, scale = bf16, zero = bf16>
mega.weight @"blocks.1.moe.up" : !mega.quant<64x2304x1024xi4, group = 128, scale = bf16, zero = bf16>
mega.weight @"blocks.1.moe.down" : !mega.quant<64x1024x2304xi4, group = 128, scale = bf16, zero = bf16>
mega.weight @"blocks.1.moe.s_gate" : !mega.quant<1x2304x1024xi4, group = 128, scale = bf16, zero = bf16>
mega.weight @"blocks.1.moe.s_up" : !mega.quant<1x2304x1024xi4, group = 128, scale = bf16, zero = bf16>
mega.weight @"blocks.1.moe.s_down" : !mega.quant<1x1024x2304xi4, group = 128, scale = bf16, zero = bf16>
mega.weight @"blocks.2.attn_norm" : tensor<2304xbf16>
mega.weight @"blocks.2.moe_norm" : tensor<2304xbf16>
mega.weight @"blocks.2.attn.conv_w" : tensor<3x4096x4xbf16>
mega.weight @"blocks.2.attn.q_proj" : !mega.quant<2304x4096xi4, group = 128, scale = bf16, zero = bf16>
mega.weight @"blocks.2.attn.k_proj" : !mega.quant<2304x4096xi4, group = 128, scale = bf16, zero = bf16>
mega.weight @"blocks.2.attn.v_proj" : !mega.quant<2304x4096xi4, group = 128, scale = bf16, zero = bf16>
mega.weight @"blocks.2.attn.g_proj" : !mega.quant<2304x4096xi4, group = 128, scale = bf16, zero = bf16>
mega.weight @"blocks.2.attn.beta_proj.weight" : tensor<32x2304xbf16>
mega.weight @"blocks.2.attn.o_proj" : !mega.quant<4096x2304xi4, group = 128, scale = bf16, zero = bf16>
mega.weight @"blocks.2.moe.router.weight" : tensor<64x2304xbf16>
mega.weight @"blocks.2.moe.gate" : !mega.quant<64x2304x1024xi4, group = 128, scale = bf16, zero = bf16>
mega.weight @"blocks.2.moe.up" : !mega.quant<64x2304x1024xi4, group = 128, scale = bf16, zero = bf16>
mega.weight @"blocks.2.moe.down" : !mega.quant<64x1024x2304xi4, group = 128, scale = bf16, zero = bf16>
mega.weight @"blocks.2.moe.s_gate" : !mega.quant<1x2304x1024xi4, group = 128, scale = bf16, zero = bf16>
mega.weight @"blocks.2.moe.s_up" : !mega.quant<1x2304x1024xi4, group = 128, scale = bf16, zero = bf16>
mega.weight @"blocks.2.moe.s_down" : !mega.quant<1x1024x2304xi4, group = 128, scale = bf16, zero = bf16>
mega.weight @"blocks.3.attn_norm" : tensor<2304xbf16>
mega.weight @"blocks.3.moe_norm" : tensor<2304xbf16>
mega.weight @"blocks.3.attn.q_proj" : !mega.quant<2304x6144xi4, group = 128, scale = bf16, zero = bf16>
mega.weight @"blocks.3.attn.kv_a" : !mega.quant<2304x576xi4, group = 128, scale = bf16, zero = bf16>
mega.weight @"blocks.3.attn.kv_b" : !mega.quant<512x8192xi4, group = 128, scale = bf16, zero = bf16>
mega.weight @"blocks.3.attn.o_proj" : !mega.quant<4096x2304xi4, group = 128, scale = bf16, zero = bf16>
mega.weight @"blocks.3.moe.router.weight" : tensor<64x2304xbf16>
mega.weight @"blocks.3.moe.gate" : !mega.quant<64x2304x1024xi4, group = 128, scale = bf16, zero = bf16>
mega.weight @"blocks.3.moe.up" : !mega.quant<64x2304x1024xi4, group = 128, scale = bf16, zero = bf16>
mega.weight @"blocks.3.moe.down" : !mega.quant<64x1024x2304xi4, group = 128, scale = bf16, zero = bf16>
mega.weight @"blocks.3.moe.s_gate" : !mega.quant<1x2304x1024xi4, group = 128, scale = bf16, zero = bf16>
mega.weight @"blocks.3.moe.s_up" : !mega.quant<1x2304x1024xi4, group = 128, scale = bf16, zero = bf16>
mega.weight @"blocks.3.moe.s_down" : !mega.quant<1x1024x2304xi4, group = 128, scale = bf16, zero = bf16>

mega.state @"0.S" : tensor<32x128x128xf32>
mega.state @"0.cq" : tensor<3x4096xbf16>
mega.state @"0.ck" : tensor<3x4096xbf16>
mega.state @"0.cv" : tensor<3x4096xbf16>
mega.state @"1.S" : tensor<32x128x128xf32>
mega.state @"1.cq" : tensor<3x4096xbf16>
mega.state @"1.ck" : tensor<3x4096xbf16>
mega.state @"1.cv" : tensor<3x4096xbf16>
mega.state @"2.S" : tensor<32x128x128xf32>
mega.state @"2.cq" : tensor<3x4096xbf16>
mega.state @"2.ck" : tensor<3x4096xbf16>
mega.state @"2.cv" : tensor<3x4096xbf16>
mega.state @"3.c_kv" : tensor<?x512xbf16>
mega.state @"3.k_rope" : tensor<?x64xbf16>

mega.block @motif(%x: tensor<2304xbf16>) -> tensor<2304xbf16> {
  %pos = mega.position

  // Layer 0: gated delta rule
  %n0 = mega.rms_norm %x, @"blocks.0.attn_norm" eps(1.0e-6) : tensor<2304xbf16> -> tensor<2304xbf16>
  %q0 = mega.linear %n0, @"blocks.0.attn.q_proj" : tensor<2304xbf16> -> tensor<4096xbf16>
  %qconv0 = mega.short_conv %q0, @"blocks.0.attn.conv_w"[0], @"0.cq" : tensor<4096xbf16> -> tensor<4096xf32>
  %qact0 = mega.map(%z = %qconv0) : (tensor<4096xf32>) -> tensor<4096xbf16> {
    %one = arith.constant 1.0 : f32
    %neg = arith.negf %z : f32
    %exp = math.exp %neg : f32
    %den = arith.addf %exp, %one : f32
    %silu = arith.divf %z, %den : f32
    mega.yield %silu
  }
  %qhead0 = mega.reshape %qact0 : tensor<4096xbf16> -> tensor<32x128xbf16>
  %k0 = mega.linear %n0, @"blocks.0.attn.k_proj" : tensor<2304xbf16> -> tensor<4096xbf16>
  %kconv0 = mega.short_conv %k0, @"blocks.0.attn.conv_w"[1], @"0.ck" : tensor<4096xbf16> -> tensor<4096xf32>
  %kact0 = mega.map(%z = %kconv0) : (tensor<4096xf32>) -> tensor<4096xbf16> {
    %one = arith.constant 1.0 : f32
    %neg = arith.negf %z : f32
    %exp = math.exp %neg : f32
    %den = arith.addf %exp, %one : f32
    %silu = arith.divf %z, %den : f32
    mega.yield %silu
  }
  %khead0 = mega.reshape %kact0 : tensor<4096xbf16> -> tensor<32x128xbf16>
  %v0 = mega.linear %n0, @"blocks.0.attn.v_proj" : tensor<2304xbf16> -> tensor<4096xbf16>
  %vconv0 = mega.short_conv %v0, @"blocks.0.attn.conv_w"[2], @"0.cv" : tensor<4096xbf16> -> tensor<4096xf32>
  %vact0 = mega.map(%z = %vconv0) : (tensor<4096xf32>) -> tensor<4096xbf16> {
    %one = arith.constant 1.0 : f32
    %neg = arith.negf %z : f32
    %exp = math.exp %neg : f32
    %den = arith.addf %exp, %one : f32
    %silu = arith.divf %z, %den : f32
    mega.yield %silu
  }
  %vhead0 = mega.reshape %vact0 : tensor<4096xbf16> -> tensor<32x128xbf16>
  %qs0 = mega.map(%z = %qhead0) : (tensor<32x128xbf16>) -> tensor<32x128xf32> {
    %s = arith.constant 0.08838834764831845 : f32
    %scaled = arith.mulf %z, %s : f32
    mega.yield %scaled
  }
  %f0 = mega.linear %n0, @"blocks.0.attn.g_proj" : tensor<2304xbf16> -> tensor<4096xbf16>
  // exp(-softplus(f)) = sigmoid(-f)
  %d0 = mega.map(%z = %f0) : (tensor<4096xbf16>) -> tensor<4096xf32> {
    %m = arith.negf %z : f32
    %one = arith.constant 1.0 : f32
    %neg = arith.negf %m : f32
    %exp = math.exp %neg : f32
    %den = arith.addf %exp, %one : f32
    %sig = arith.divf %one, %den : f32
    mega.yield %sig
  }
  %decay0 = mega.reshape %d0 : tensor<4096xf32> -> tensor<32x128xf32>
  %bl0 = mega.linear %n0, @"blocks.0.attn.beta_proj.weight" : tensor<2304xbf16> -> tensor<32xbf16>
  %beta0 = mega.map(%z = %bl0) : (tensor<32xbf16>) -> tensor<32xf32> {
    %one = arith.constant 1.0 : f32
    %neg = arith.negf %z : f32
    %exp = math.exp %neg : f32
    %den = arith.addf %exp, %one : f32
    %sig = arith.divf %one, %den : f32
    mega.yield %sig
  }
  %o0 = mega.delta_rule %qs0, %khead0, %vhead0, %beta0, @"0.S" decay(channel) %decay0
      : tensor<32x128xf32>, tensor<32x128xbf16>, tensor<32x128xbf16>, tensor<32xf32>, tensor<32x128xf32> -> tensor<32x128xbf16>
  %of0 = mega.reshape %o0 : tensor<32x128xbf16> -> tensor<4096xbf16>
  %a0 = mega.linear %of0, @"blocks.0.attn.o_proj" : tensor<4096xbf16> -> tensor<2304xbf16>
  %h0 = mega.map(%a = %x, %b = %a0) : (tensor<2304xbf16>, tensor<2304xbf16>) -> tensor<2304xbf16> {
    %sum = arith.addf %a, %b : f32
    mega.yield %sum
  }

  // Layer 0: mixture of experts
  %m0 = mega.rms_norm %h0, @"blocks.0.moe_norm" eps(1.0e-6) : tensor<2304xbf16> -> tensor<2304xbf16>
  %lg0 = mega.linear %m0, @"blocks.0.moe.router.weight" : tensor<2304xbf16> -> tensor<64xbf16>
  %ids0, %w0 = mega.router %lg0 softmax renormalize(1.0e-9) scale(2.446) probe("0.experts")
      : tensor<64xbf16> -> tensor<8xi32>, tensor<8xf32>
  %e0 = mega.experts(%m0, %ids0, %w0) gate @"blocks.0.moe.gate" up @"blocks.0.moe.up" down @"blocks.0.moe.down" shared @"blocks.0.moe.s_gate", @"blocks.0.moe.s_up", @"blocks.0.moe.s_down"
      : tensor<2304xbf16>, tensor<8xi32>, tensor<8xf32> -> tensor<2304xbf16> {
  ^bb0(%g: f32, %u: f32):
    %one = arith.constant 1.0 : f32
    %neg = arith.negf %g : f32
    %exp = math.exp %neg : f32
    %den = arith.addf %exp, %one : f32
    %silu = arith.divf %g, %den : f32
    %h = arith.mulf %silu, %u : f32
    mega.yield %h
  }
  %x0 = mega.map(%a = %h0, %b = %e0) : (tensor<2304xbf16>, tensor<2304xbf16>) -> tensor<2304xbf16> {
    %sum = arith.addf %a, %b : f32
    mega.yield %sum
  }

  // Layer 1: gated delta rule
  %n1 = mega.rms_norm %x0, @"blocks.1.attn_norm" eps(1.0e-6) : tensor<2304xbf16> -> tensor<2304xbf16>
  %q1 = mega.linear %n1, @"blocks.1.attn.q_proj" : tensor<2304xbf16> -> tensor<4096xbf16>
  %qconv1 = mega.short_conv %q1, @"blocks.1.attn.conv_w"[0], @"1.cq" : tensor<4096xbf16> -> tensor<4096xf32>
  %qact1 = mega.map(%z = %qconv1) : (tensor<4096xf32>) -> tensor<4096xbf16> {
    %one = arith.constant 1.0 : f32
    %neg = arith.negf %z : f32
    %exp = math.exp %neg : f32
    %den = arith.addf %exp, %one : f32
    %silu = arith.divf %z, %den : f32
    mega.yield %silu
  }
  %qhead1 = mega.reshape %qact1 : tensor<4096xbf16> -> tensor<32x128xbf16>
  %k1 = mega.linear %n1, @"blocks.1.attn.k_proj" : tensor<2304xbf16> -> tensor<4096xbf16>
  %kconv1 = mega.short_conv %k1, @"blocks.1.attn.conv_w"[1], @"1.ck" : tensor<4096xbf16> -> tensor<4096xf32>
  %kact1 = mega.map(%z = %kconv1) : (tensor<4096xf32>) -> tensor<4096xbf16> {
    %one = arith.constant 1.0 : f32
    %neg = arith.negf %z : f32
    %exp = math.exp %neg : f32
    %den = arith.addf %exp, %one : f32
    %silu = arith.divf %z, %den : f32
    mega.yield %silu
  }
  %khead1 = mega.reshape %kact1 : tensor<4096xbf16> -> tensor<32x128xbf16>
  %v1 = mega.linear %n1, @"blocks.1.attn.v_proj" : tensor<2304xbf16> -> tensor<4096xbf16>
  %vconv1 = mega.short_conv %v1, @"blocks.1.attn.conv_w"[2], @"1.cv" : tensor<4096xbf16> -> tensor<4096xf32>
  %vact1 = mega.map(%z = %vconv1) : (tensor<4096xf32>) -> tensor<4096xbf16> {
    %one = arith.constant 1.0 : f32
    %neg = arith.negf %z : f32
    %exp = math.exp %neg : f32
    %den = arith.addf %exp, %one : f32
    %silu = arith.divf %z, %den : f32
    mega.yield %silu
  }
  %vhead1 = mega.reshape %vact1 : tensor<4096xbf16> -> tensor<32x128xbf16>
  %qs1 = mega.map(%z = %qhead1) : (tensor<32x128xbf16>) -> tensor<32x128xf32> {
    %s = arith.constant 0.08838834764831845 : f32
    %scaled = arith.mulf %z, %s : f32
    mega.yield %scaled
  }
  %f1 = mega.linear %n1, @"blocks.1.attn.g_proj" : tensor<2304xbf16> -> tensor<4096xbf16>
  // exp(-softplus(f)) = sigmoid(-f)
  %d1 = mega.map(%z = %f1) : (tensor<4096xbf16>) -> tensor<4096xf32> {
    %m = arith.negf %z : f32
    %one = arith.constant 1.0 : f32
    %neg = arith.negf %m : f32
    %exp = math.exp %neg : f32
    %den = arith.addf %exp, %one : f32
    %sig = arith.divf %one, %den : f32
    mega.yield %sig
  }
  %decay1 = mega.reshape %d1 : tensor<4096xf32> -> tensor<32x128xf32>
  %bl1 = mega.linear %n1, @"blocks.1.attn.beta_proj.weight" : tensor<2304xbf16> -> tensor<32xbf16>
  %beta1 = mega.map(%z = %bl1) : (tensor<32xbf16>) -> tensor<32xf32> {
    %one = arith.constant 1.0 : f32
    %neg = arith.negf %z : f32
    %exp = math.exp %neg : f32
    %den = arith.addf %exp, %one : f32
    %sig = arith.divf %one, %den : f32
    mega.yield %sig
  }
  %o1 = mega.delta_rule %qs1, %khead1, %vhead1, %beta1, @"1.S" decay(channel) %decay1
      : tensor<32x128xf32>, tensor<32x128xbf16>, tensor<32x128xbf16>, tensor<32xf32>, tensor<32x128xf32> -> tensor<32x128xbf16>
  %of1 = mega.reshape %o1 : tensor<32x128xbf16> -> tensor<4096xbf16>
  %a1 = mega.linear %of1, @"blocks.1.attn.o_proj" : tensor<4096xbf16> -> tensor<2304xbf16>
  %h1 = mega.map(%a = %x0, %b = %a1) : (tensor<2304xbf16>, tensor<2304xbf16>) -> tensor<2304xbf16> {
    %sum = arith.addf %a, %b : f32
    mega.yield %sum
  }

  // Layer 1: mixture of experts
  %m1 = mega.rms_norm %h1, @"blocks.1.moe_norm" eps(1.0e-6) : tensor<2304xbf16> -> tensor<2304xbf16>
  %lg1 = mega.linear %m1, @"blocks.1.moe.router.weight" : tensor<2304xbf16> -> tensor<64xbf16>
  %ids1, %w1 = mega.router %lg1 softmax renormalize(1.0e-9) scale(2.446) probe("1.experts")
      : tensor<64xbf16> -> tensor<8xi32>, tensor<8xf32>
  %e1 = mega.experts(%m1, %ids1, %w1) gate @"blocks.1.moe.gate" up @"blocks.1.moe.up" down @"blocks.1.moe.down" shared @"blocks.1.moe.s_gate", @"blocks.1.moe.s_up", @"blocks.1.moe.s_down"
      : tensor<2304xbf16>, tensor<8xi32>, tensor<8xf32> -> tensor<2304xbf16> {
  ^bb0(%g: f32, %u: f32):
    %one = arith.constant 1.0 : f32
    %neg = arith.negf %g : f32
    %exp = math.exp %neg : f32
    %den = arith.addf %exp, %one : f32
    %silu = arith.divf %g, %den : f32
    %h = arith.mulf %silu, %u : f32
    mega.yield %h
  }
  %x1 = mega.map(%a = %h1, %b = %e1) : (tensor<2304xbf16>, tensor<2304xbf16>) -> tensor<2304xbf16> {
    %sum = arith.addf %a, %b : f32
    mega.yield %sum
  }

  // Layer 2: gated delta rule
  %n2 = mega.rms_norm %x1, @"blocks.2.attn_norm" eps(1.0e-6) : tensor<2304xbf16> -> tensor<2304xbf16>
  %q2 = mega.linear %n2, @"blocks.2.attn.q_proj" : tensor<2304xbf16> -> tensor<4096xbf16>
  %qconv2 = mega.short_conv %q2, @"blocks.2.attn.conv_w"[0], @"2.cq" : tensor<4096xbf16> -> tensor<4096xf32>
  %qact2 = mega.map(%z = %qconv2) : (tensor<4096xf32>) -> tensor<4096xbf16> {
    %one = arith.constant 1.0 : f32
    %neg = arith.negf %z : f32
    %exp = math.exp %neg : f32
    %den = arith.addf %exp, %one : f32
    %silu = arith.divf %z, %den : f32
    mega.yield %silu
  }
  %qhead2 = mega.reshape %qact2 : tensor<4096xbf16> -> tensor<32x128xbf16>
  %k2 = mega.linear %n2, @"blocks.2.attn.k_proj" : tensor<2304xbf16> -> tensor<4096xbf16>
  %kconv2 = mega.short_conv %k2, @"blocks.2.attn.conv_w"[1], @"2.ck" : tensor<4096xbf16> -> tensor<4096xf32>
  %kact2 = mega.map(%z = %kconv2) : (tensor<4096xf32>) -> tensor<4096xbf16> {
    %one = arith.constant 1.0 : f32
    %neg = arith.negf %z : f32
    %exp = math.exp %neg : f32
    %den = arith.addf %exp, %one : f32
    %silu = arith.divf %z, %den : f32
    mega.yield %silu
  }
  %khead2 = mega.reshape %kact2 : tensor<4096xbf16> -> tensor<32x128xbf16>
  %v2 = mega.linear %n2, @"blocks.2.attn.v_proj" : tensor<2304xbf16> -> tensor<4096xbf16>
  %vconv2 = mega.short_conv %v2, @"blocks.2.attn.conv_w"[2], @"2.cv" : tensor<4096xbf16> -> tensor<4096xf32>
  %vact2 = mega.map(%z = %vconv2) : (tensor<4096xf32>) -> tensor<4096xbf16> {
    %one = arith.constant 1.0 : f32
    %neg = arith.negf %z : f32
    %exp = math.exp %neg : f32
    %den = arith.addf %exp, %one : f32
    %silu = arith.divf %z, %den : f32
    mega.yield %silu
  }
  %vhead2 = mega.reshape %vact2 : tensor<4096xbf16> -> tensor<32x128xbf16>
  %qs2 = mega.map(%z = %qhead2) : (tensor<32x128xbf16>) -> tensor<32x128xf32> {
    %s = arith.constant 0.08838834764831845 : f32
    %scaled = arith.mulf %z, %s : f32
    mega.yield %scaled
  }
  %f2 = mega.linear %n2, @"blocks.2.attn.g_proj" : tensor<2304xbf16> -> tensor<4096xbf16>
  // exp(-softplus(f)) = sigmoid(-f)
  %d2 = mega.map(%z = %f2) : (tensor<4096xbf16>) -> tensor<4096xf32> {
    %m = arith.negf %z : f32
    %one = arith.constant 1.0 : f32
    %neg = arith.negf %m : f32
    %exp = math.exp %neg : f32
    %den = arith.addf %exp, %one : f32
    %sig = arith.divf %one, %den : f32
    mega.yield %sig
  }
  %decay2 = mega.reshape %d2 : tensor<4096xf32> -> tensor<32x128xf32>
  %bl2 = mega.linear %n2, @"blocks.2.attn.beta_proj.weight" : tensor<2304xbf16> -> tensor<32xbf16>
  %beta2 = mega.map(%z = %bl2) : (tensor<32xbf16>) -> tensor<32xf32> {
    %one = arith.constant 1.0 : f32
    %neg = arith.negf %z : f32
    %exp = math.exp %neg : f32
    %den = arith.addf %exp, %one : f32
    %sig = arith.divf %one, %den : f32
    mega.yield %sig
  }
  %o2 = mega.delta_rule %qs2, %khead2, %vhead2, %beta2, @"2.S" decay(channel) %decay2
      : tensor<32x128xf32>, tensor<32x128xbf16>, tensor<32x128xbf16>, tensor<32xf32>, tensor<32x128xf32> -> tensor<32x128xbf16>
  %of2 = mega.reshape %o2 : tensor<32x128xbf16> -> tensor<4096xbf16>
  %a2 = mega.linear %of2, @"blocks.2.attn.o_proj" : tensor<4096xbf16> -> tensor<2304xbf16>
  %h2 = mega.map(%a = %x1, %b = %a2) : (tensor<2304xbf16>, tensor<2304xbf16>) -> tensor<2304xbf16> {
    %sum = arith.addf %a, %b : f32
    mega.yield %sum
  }

  // Layer 2: mixture of experts
  %m2 = mega.rms_norm %h2, @"blocks.2.moe_norm" eps(1.0e-6) : tensor<2304xbf16> -> tensor<2304xbf16>
  %lg2 = mega.linear %m2, @"blocks.2.moe.router.weight" : tensor<2304xbf16> -> tensor<64xbf16>
  %ids2, %w2 = mega.router %lg2 softmax renormalize(1.0e-9) scale(2.446) probe("2.experts")
      : tensor<64xbf16> -> tensor<8xi32>, tensor<8xf32>
  %e2 = mega.experts(%m2, %ids2, %w2) gate @"blocks.2.moe.gate" up @"blocks.2.moe.up" down @"blocks.2.moe.down" shared @"blocks.2.moe.s_gate", @"blocks.2.moe.s_up", @"blocks.2.moe.s_down"
      : tensor<2304xbf16>, tensor<8xi32>, tensor<8xf32> -> tensor<2304xbf16> {
  ^bb0(%g: f32, %u: f32):
    %one = arith.constant 1.0 : f32
    %neg = arith.negf %g : f32
    %exp = math.exp %neg : f32
    %den = arith.addf %exp, %one : f32
    %silu = arith.divf %g, %den : f32
    %h = arith.mulf %silu, %u : f32
    mega.yield %h
  }
  %x2 = mega.map(%a = %h2, %b = %e2) : (tensor<2304xbf16>, tensor<2304xbf16>) -> tensor<2304xbf16> {
    %sum = arith.addf %a, %b : f32
    mega.yield %sum
  }

  // Layer 3: latent attention
  %n3 = mega.rms_norm %x2, @"blocks.3.attn_norm" eps(1.0e-6) : tensor<2304xbf16> -> tensor<2304xbf16>
  %q3 = mega.linear %n3, @"blocks.3.attn.q_proj" : tensor<2304xbf16> -> tensor<6144xbf16>
  %kv3 = mega.linear %n3, @"blocks.3.attn.kv_a" : tensor<2304xbf16> -> tensor<576xbf16>
  %qh3 = mega.reshape %q3 : tensor<6144xbf16> -> tensor<32x192xbf16>
  %qr3 = mega.rope %qh3, %pos interleaved range(128, 64) theta(10000.0) : tensor<32x192xbf16> -> tensor<32x192xbf16>
  %c3 = mega.slice %kv3 from 0 : tensor<576xbf16> -> tensor<512xbf16>
  %r3 = mega.slice %kv3 from 512 : tensor<576xbf16> -> tensor<64xbf16>
  %rr3 = mega.rope %r3, %pos interleaved range(0, 64) theta(10000.0) : tensor<64xbf16> -> tensor<64xbf16>
  mega.cache_append %c3, %pos, @"3.c_kv" : tensor<512xbf16>
  mega.cache_append %rr3, %pos, @"3.k_rope" : tensor<64xbf16>
  %o3 = mega.latent_attention %qr3, %pos, @"3.c_kv", @"3.k_rope", @"blocks.3.attn.kv_b" scale(0.07216878364870322) absorb
      : tensor<32x192xbf16> -> tensor<32x128xbf16>
  %of3 = mega.reshape %o3 : tensor<32x128xbf16> -> tensor<4096xbf16>
  %a3 = mega.linear %of3, @"blocks.3.attn.o_proj" : tensor<4096xbf16> -> tensor<2304xbf16>
  %h3 = mega.map(%a = %x2, %b = %a3) : (tensor<2304xbf16>, tensor<2304xbf16>) -> tensor<2304xbf16> {
    %sum = arith.addf %a, %b : f32
    mega.yield %sum
  }

  // Layer 3: mixture of experts
  %m3 = mega.rms_norm %h3, @"blocks.3.moe_norm" eps(1.0e-6) : tensor<2304xbf16> -> tensor<2304xbf16>
  %lg3 = mega.linear %m3, @"blocks.3.moe.router.weight" : tensor<2304xbf16> -> tensor<64xbf16>
  %ids3, %w3 = mega.router %lg3 softmax renormalize(1.0e-9) scale(2.446) probe("3.experts")
      : tensor<64xbf16> -> tensor<8xi32>, tensor<8xf32>
  %e3 = mega.experts(%m3, %ids3, %w3) gate @"blocks.3.moe.gate" up @"blocks.3.moe.up" down @"blocks.3.moe.down" shared @"blocks.3.moe.s_gate", @"blocks.3.moe.s_up", @"blocks.3.moe.s_down"
      : tensor<2304xbf16>, tensor<8xi32>, tensor<8xf32> -> tensor<2304xbf16> {
  ^bb0(%g: f32, %u: f32):
    %one = arith.constant 1.0 : f32
    %neg = arith.negf %g : f32
    %exp = math.exp %neg : f32
    %den = arith.addf %exp, %one : f32
    %silu = arith.divf %g, %den : f32
    %h = arith.mulf %silu, %u : f32
    mega.yield %h
  }
  %x3 = mega.map(%a = %h3, %b = %e3) : (tensor<2304xbf16>, tensor<2304xbf16>) -> tensor<2304xbf16> {
    %sum = arith.addf %a, %b : f32
    mega.yield %sum
  }

  mega.return %x3 : tensor<2304xbf16>
}
