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

def Mega_CounterResource : Resource<"::mega::CounterResource">;
def UpdatesCounters : MemoryEffects<[MemRead<Mega_CounterResource>,
                                     MemWrite<Mega_CounterResource>]>;

def Mega_CountersOp : Mega_Op<"counters", [UpdatesCounters,
    ParentOneOf<["ProgramOp", "KernelOp"]>]> {
  let summary = "a set of counters in the kernel's workspace";
  let description = [{
    `count` 32-bit words that are 0 before the first step. Counter i lies at
    byte `offset + 128 * i` of the workspace (`kCounterStride`), so that no two
    share a sector. `offset` is set by plan-memory.

    A step's rules, which -mega-verify-schedule checks: every wait for a counter
    expects all signals that the counter gets in a step; all stages that signal
    stand before all stages that wait; one `mega.reset` makes the set 0 again.

    ```mlir
    %c = mega.counters "q -> delta" count(32) : !mega.counters
    ```
  }];
  let arguments = (ins StrAttr:$name, I64Attr:$count,
                       OptionalAttr<I64Attr>:$offset);
  let results = (outs Mega_CountersType:$counters);
  let assemblyFormat = [{
    $name `count` `(` $count `)` (`offset` `(` $offset^ `)`)? attr-dict
    `:` qualified(type($counters))
  }];
  let hasVerifier = 1;
}

def Mega_SignalOp : Mega_Op<"signal", [UpdatesCounters,
                                       HasParent<"StageOp">]> {
  let summary = "counts finished tiles of an anchor";
  let description = [{
    `value` names an anchor of the stage: it is one of its results or hangs on
    one. When the owner of tile t of that anchor (t counts from the anchor's
    first tile) has done all that hangs on the anchor (stores, state, what
    the tile reads), it adds 1 to counter `map(t)`: all its threads' accesses,
    then the addition, release at gpu scope.

    A tile of a split anchor has several owners. Each adds the number of
    reduction steps that it took (`getReductionSteps` is their sum), so what a
    tile adds does not depend on the grid. A tile that has nothing to do still
    signals, once.

    Where the op stands in the stage does not matter. Several ops may feed one
    set.
  }];
  let arguments = (ins Mega_CountersType:$counters, Mega_AnyValue:$value,
                       AffineMapAttr:$map);
  let assemblyFormat = [{
    $counters `,` $value `map` `(` $map `)` attr-dict `:` type($value)
  }];
  let hasVerifier = 1;
}

def Mega_WaitOp : Mega_Op<"wait", [UpdatesCounters, HasParent<"StageOp">]> {
  let summary = "waits until a counter has its signals";
  let description = [{
    If `map` is constant, a CTA waits for that counter before it begins the
    stage's prologue; otherwise before tile t of the stage (t counts through the
    whole stage, as in access relations) it waits for counter `map(t)`. A wait
    ends when the counter has reached `target`; it is an acquire at gpu scope
    for all threads of the CTA.

    A wait before a tile orders only what the tile does: loads whose access
    relation depends on the tile, the anchor's and the epilogue's state and
    stores. Prologue loads and stores belong to no tile.

    `covers` lists the dependences that make it necessary, as for
    `mega.grid_barrier`.
  }];
  let arguments = (ins Mega_CountersType:$counters, AffineMapAttr:$map,
                       I64Attr:$target, StrArrayAttr:$covers);
  let assemblyFormat = [{
    $counters `map` `(` $map `)` `target` `(` $target `)` `covers` $covers
    attr-dict
  }];
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    /// True if it stands before the stage's prologue.
    bool isWholeStage() { return getMap().isConstant(); }
  }];
}

def Mega_ResetOp : Mega_Op<"reset", [UpdatesCounters, HasParent<"PhaseOp">]> {
  let summary = "makes all counters of a set 0";
  let description = [{
    One CTA stores the zeros when it begins the phase; nobody waits for it. A
    grid barrier stands between the phase and every phase that signals or waits
    for the set: after them, or before them, for the end of a launch orders all
    of it before the next.
  }];
  let arguments = (ins Mega_CountersType:$counters);
  let assemblyFormat = "$counters attr-dict";
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
