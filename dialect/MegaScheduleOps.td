// SPDX-License-Identifier: Apache-2.0
//
// Levels 2 and 3: when stages run, and where everything lies.

#ifndef MEGA_SCHEDULE_OPS_TD
#define MEGA_SCHEDULE_OPS_TD

include "MegaStageOps.td"

def Mega_GridBarrierResource : Resource<"::mega::GridBarrierResource">;

def Mega_PhaseOp : Mega_Op<"phase", [SingleBlock, NoTerminator,
    ParentOneOf<["ProgramOp", "KernelOp"]>]> {
  let summary = "stages that run without a grid-wide wait between them";
  let arguments = (ins I64Attr:$index);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = "$index attr-dict-with-keyword $body";
}

def Mega_GridBarrierOp : Mega_Op<"grid_barrier", [
    MemoryEffects<[MemRead<Mega_GridBarrierResource>,
                   MemWrite<Mega_GridBarrierResource>]>,
    ParentOneOf<["ProgramOp", "KernelOp"]>]> {
  let summary = "every CTA arrives before any leaves";
  let description = [{
    Orders all memory accesses of the phases before it against those after it
    (release and acquire at gpu scope). `covers` lists the dependences that
    make it necessary, as "producer -> consumer: what".
  }];
  let arguments = (ins StrArrayAttr:$covers);
  let assemblyFormat = "`covers` $covers attr-dict";
}

def Mega_KernelOp : Mega_Op<"kernel", [Symbol, IsolatedFromAbove, SingleBlock,
                                       NoTerminator]> {
  let summary = "a scheduled program with every address decided";
  let description = [{
    Sizes are in bytes. `weight_layout` lists where and in which order each
    weight lies in the weight arena; the runtime repacks into it once.
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, Mega_TargetAttr:$target,
                       I64Attr:$workspace_bytes, I64Attr:$weight_bytes,
                       ArrayAttr:$weight_layout);
  let regions = (region SizedRegion<1>:$body);
  let hasCustomAssemblyFormat = 1;
  let hasVerifier = 1;
}

#endif // MEGA_SCHEDULE_OPS_TD
