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
//      CHECK:/// Where the operands of stage_00_elementwise lie.
// CHECK-NEXT:struct Arguments0 {
// CHECK-NEXT:  mega::u8 *unused;
// CHECK-NEXT:};
//      CHECK:/// elementwise (pretty.mlir:11)
// CHECK-NEXT:static __device__ __noinline__ mega::u32 stage_00_elementwise(int arguments, mega::u32 bursts) {
// CHECK-NEXT:  extern __shared__ __align__(128) mega::u8 shared[];
// CHECK-NEXT:  const Params &p = *reinterpret_cast<const Params *>(shared + {{.*}});
// CHECK-NEXT:  {{\[\[maybe_unused\]\]}} const Arguments0 &a = *reinterpret_cast<const Arguments0 *>(shared + arguments);
// CHECK-NEXT:  {{\[\[maybe_unused\]\]}} const auto *const ranges = reinterpret_cast<const mega::Range *>(shared + {{.*}});
// CHECK-NEXT:  {{\[\[maybe_unused\]\]}} const mega::GridBarrier barrier(p.workspace, shared + {{.*}});
// CHECK-NEXT:  Ring ring;
// CHECK-NEXT:  ring.attach(shared, bursts);
// CHECK-NEXT:  auto *const input = reinterpret_cast<const mega::u16 *>(p.input);
// CHECK-NEXT:  const auto map1 = [](float a0) {
// CHECK-NEXT:    const float v0 = a0 + a0;
// CHECK-NEXT:    return v0;
// CHECK-NEXT:  };
// CHECK-NEXT:  auto *const output = reinterpret_cast<mega::u16 *>(p.output);
// CHECK-NEXT:  {
// CHECK-NEXT:    const mega::Range own = ranges[0];
// CHECK-NEXT:    for (int i = own.begin + int(threadIdx.x); i < own.end; i += 512) {
// CHECK-NEXT:      const float v2 = mega::roundBf16(map1(mega::bf16ToFloat(mega::loadSharedBf16(input + i))));
// CHECK-NEXT:      output[i] = mega::floatToBf16(v2);
// CHECK-NEXT:    }
// CHECK-NEXT:  }
// CHECK-NEXT:  mega::fenceAsyncProxy();
// CHECK-NEXT:  return ring.taken;
// CHECK-NEXT:}
//      CHECK:/// Where operands lie: the arguments of each kind of stage, one set after the
// CHECK-NEXT:/// other.
// CHECK-NEXT:__device__ const mega::Operand kOperands[] = {
// CHECK-NEXT:    // Arguments0
// CHECK-NEXT:    {}, // unused
// CHECK-NEXT:};
//      CHECK:/// Lists that CTAs share out; ranges[i] is a CTA's part of list i.
// CHECK-NEXT:__device__ const mega::Share kShares[] = {
// CHECK-NEXT:    {64, 1, mega::Share::kTiles},
// CHECK-NEXT:};
//      CHECK:extern "C" __global__ void __launch_bounds__(512, 1)
// CHECK-NEXT:megalith_double(const __grid_constant__ Params p) {
// CHECK-NEXT:  extern __shared__ __align__(128) mega::u8 shared[];
// CHECK-NEXT:  Ring ring;
// CHECK-NEXT:  ring.init(shared);
// CHECK-NEXT:  static_assert(sizeof(Params) == 40, "shared-memory plan");
// CHECK-NEXT:  if (threadIdx.x == 0)
// CHECK-NEXT:    *reinterpret_cast<Params *>(shared + {{.*}}) = p;
// CHECK-NEXT:  mega::resolveOperands(shared + {{.*}}, kOperands, p.workspace, p.weights,
// CHECK-NEXT:      [&](int) -> void * { return nullptr; });
// CHECK-NEXT:  mega::shareOut(reinterpret_cast<mega::Range *>(shared + {{.*}}), kShares);
// CHECK-NEXT:  __syncthreads();
// CHECK-NEXT:  mega::u32 bursts = 0;
// CHECK-NEXT:  mega::atPhase(0);
// CHECK-NEXT:  // elementwise (pretty.mlir:11)
// CHECK-NEXT:  mega::atStage(0);
// CHECK-NEXT:  bursts = stage_00_elementwise({{.*}}, bursts);
// CHECK-NEXT:}
