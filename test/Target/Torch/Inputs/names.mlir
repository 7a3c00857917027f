// SPDX-License-Identifier: Apache-2.0
// Every form of name and of state: nested, at the root, numbers that are no
// index, quotes; a weight that nothing reads; f32 out.
mega.weight @"0.proj" : !mega.quant<32x64xi4, group = 32, scale = bf16, zero = bf16>
mega.weight @norm : tensor<32xbf16>
mega.weight @"odd \22name\22\\.w" : tensor<64x32xbf16>
mega.state @latent : tensor<?x32xbf16>
mega.state @"1.07.x" : tensor<?x2x16xbf16>
mega.block @"two-part name" (%x: tensor<32xbf16>) -> tensor<64xbf16> {
  %pos = mega.position
  mega.cache_append %x, %pos, @latent : tensor<32xbf16>
  %r = mega.reshape %x : tensor<32xbf16> -> tensor<2x16xbf16>
  mega.cache_append %r, %pos, @"1.07.x" : tensor<2x16xbf16>
  %y = mega.linear %x, @"0.proj" : tensor<32xbf16> -> tensor<64xbf16>
  mega.return %y : tensor<64xbf16>
}
