// The smallest block with a weight.
mega.weight @w : !mega.quant<32x64xi4, group = 32, scale = bf16, zero = bf16>
mega.block @tiny(%x: tensor<32xbf16>) -> tensor<64xbf16> {
  %y = mega.linear %x, @w : tensor<32xbf16> -> tensor<64xbf16>
  mega.return %y : tensor<64xbf16>
}
