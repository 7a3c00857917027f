// SPDX-License-Identifier: Apache-2.0
// RUN: megalithc %s --emit=cuda -o - | FileCheck %s --match-full-lines --strict-whitespace
// The whole text of a phase, to the letter: what a reader of kernel.cu sees. One
// such test is enough; the others check what must hold, not how it looks.

mega.block @double(%x: tensor<64xbf16>) -> tensor<64xbf16> {
  %y = mega.map(%a = %x) : (tensor<64xbf16>) -> tensor<64xbf16> {
    %t = arith.addf %a, %a : f32
    mega.yield %t
  }
  mega.return %y : tensor<64xbf16>
}

//      CHECK:// One decode step of 'double' as one cooperative kernel, written by megalithc.
// CHECK-NEXT://
// CHECK-NEXT:// Launch: one CTA of 512 threads per SM, all co-resident, at most 132 CTAs.
// CHECK-NEXT:// Compiles alone: nvcc -std=c++17 -arch=sm_90a -cubin kernel.cu
//      CHECK:/// The kernel's one parameter; the runtime fills it in (mega_kernel_header).
// CHECK-NEXT:struct Params {
// CHECK-NEXT:  const void *input;
// CHECK-NEXT:  void *output;
// CHECK-NEXT:  const mega::u8 *weights;
// CHECK-NEXT:  mega::u8 *workspace;
// CHECK-NEXT:  long long position; ///< rows in every cache before this step
// CHECK-NEXT:};
//      CHECK:/// elementwise (pretty.mlir:11)
// CHECK-NEXT:static __device__ __noinline__ mega::u32 stage_00_elementwise(int arguments, mega::u32 bursts) {
// CHECK-NEXT:  extern __shared__ __align__(128) mega::u8 shared[];
// CHECK-NEXT:  const Params &p = *reinterpret_cast<const Params *>(shared + {{.*}});
// CHECK-NEXT:  const Arguments0 &a = *reinterpret_cast<const Arguments0 *>(shared + arguments);
// CHECK-NEXT:  Ring ring;
// CHECK-NEXT:  ring.attach(shared, bursts);
// CHECK-NEXT:  auto *const input = reinterpret_cast<const mega::u16 *>(p.input);
// CHECK-NEXT:  const auto map0 = [](float a0) {
// CHECK-NEXT:    const float v0 = a0 + a0;
// CHECK-NEXT:    return v0;
// CHECK-NEXT:  };
// CHECK-NEXT:  auto *const output = reinterpret_cast<mega::u16 *>(p.output);
// CHECK-NEXT:  {
// CHECK-NEXT:    const mega::Range own = mega::share(64, blockIdx.x, gridDim.x);
// CHECK-NEXT:    for (int i = own.begin + int(threadIdx.x); i < own.end; i += 512) {
// CHECK-NEXT:      const float v1 = mega::roundBf16(map0(mega::bf16ToFloat(mega::loadSharedBf16(input + i))));
// CHECK-NEXT:      output[i] = mega::floatToBf16(v1);
// CHECK-NEXT:    }
// CHECK-NEXT:  }
// CHECK-NEXT:  mega::fenceAsyncProxy();
// CHECK-NEXT:  return ring.taken;
// CHECK-NEXT:}
//      CHECK:extern "C" __global__ void __launch_bounds__(512, 1)
// CHECK-NEXT:megalith_double(const Params p) {
