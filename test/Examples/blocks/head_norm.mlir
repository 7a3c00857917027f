// SPDX-License-Identifier: Apache-2.0
// RUN: megalithc %s --arch=sm_80 --emit=cuda -o %t.cu
// RUN: %if nvrtc %{ megalithc %s --arch=sm_90a --emit=cubin -o %t.cubin %}

// A norm for each head, on a head size that no unit covers evenly.
mega.weight @norm : tensor<48xbf16>
mega.weight @w : !mega.quant<192x48xi4, group = 64, scale = bf16, zero = bf16>
mega.block @head_norm(%x: tensor<192xbf16>) -> tensor<48xbf16> {
  %h = mega.reshape %x : tensor<192xbf16> -> tensor<4x48xbf16>
  %n = mega.rms_norm %h, @norm eps(1.0e-6) : tensor<4x48xbf16> -> tensor<4x48xbf16>
  %f = mega.reshape %n : tensor<4x48xbf16> -> tensor<192xbf16>
  %y = mega.linear %f, @w : tensor<192xbf16> -> tensor<48xbf16>
  mega.return %y : tensor<48xbf16>
}
