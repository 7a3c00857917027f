// SPDX-License-Identifier: Apache-2.0
// RUN: megalithc %s --arch=sm_80 --emit=cuda -o %t.cu
// RUN: %if nvrtc %{ megalithc %s --arch=sm_90a --emit=cubin -o %t.cubin %}

// f32 in and out: the operand of the tensor cores is three bf16 terms.
mega.weight @w : !mega.quant<128x40xi4, group = 128, scale = bf16, zero = bf16>
mega.block @f32_vectors(%x: tensor<128xf32>) -> tensor<40xf32> {
  %y = mega.linear %x, @w : tensor<128xf32> -> tensor<40xf32>
  mega.return %y : tensor<40xf32>
}
