// SPDX-License-Identifier: Apache-2.0
//
// Level 1: how the block is parallel. Stages over buffers; inside a stage, the
// level-0 ops again, plus the halves of the two ops that need several stages.

#ifndef MEGA_STAGE_OPS_TD
#define MEGA_STAGE_OPS_TD

include "MegaBlockOps.td"

def Mega_AnyValue : AnyTypeOf<[StaticShapeTensorOf<[BF16, F32, I32]>],
                              "static tensor of bf16, f32 or i32">;

def Mega_ProgramOp : Mega_Op<"program", [Symbol, IsolatedFromAbove,
                                         SingleBlock, NoTerminator]> {
  let summary = "a block as stages (level 1) or as phases (level 2)";
  let description = [{
    The two block arguments are the caller's input and output vectors.

    ```mlir
    mega.program @motif(%in, %out)
        : !mega.buffer<2304xbf16>, !mega.buffer<2304xbf16> { ... }
    ```
  }];
  let arguments = (ins SymbolNameAttr:$sym_name);
  let regions = (region SizedRegion<1>:$body);
  let hasCustomAssemblyFormat = 1;
  let hasVerifier = 1;
}

def Mega_AllocOp : Mega_Op<"alloc"> {
  let summary = "a buffer in the kernel's workspace";
  let description = [{
    `probe` keeps the buffer to the end of the step under that name. `offset`
    is its byte offset, set by plan-memory.
  }];
  let arguments = (ins StrAttr:$name, OptionalAttr<StrAttr>:$probe,
                       OptionalAttr<I64Attr>:$offset);
  let results = (outs Res<Mega_BufferType, "", [MemAlloc]>:$buffer);
  let assemblyFormat = [{
    $name (`probe` `(` $probe^ `)`)? (`offset` `(` $offset^ `)`)? attr-dict
    `:` qualified(type($buffer))
  }];
}

def Mega_StageOp : Mega_Op<"stage", [SingleBlock, NoTerminator,
    ParentOneOf<["ProgramOp", "PhaseOp", "KernelOp"]>]> {
  let summary = "one list of tiles that the grid shares out";
  let description = [{
    The body reads from top to bottom: a prologue that every CTA computes for
    itself, anchors whose tiles are distributed, and epilogues that the owner
    of a tile computes at once. `tiles` is the length of the tile list.

    Postcondition of partition: every anchor has a tiling and every load and
    store an access relation.
  }];
  let arguments = (ins StrAttr:$name, OptionalAttr<I64Attr>:$tiles);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = [{
    $name (`tiles` `(` $tiles^ `)`)? attr-dict-with-keyword $body
  }];
  let hasVerifier = 1;
}

def Mega_LoadOp : Mega_Op<"load"> {
  let summary = "a buffer's contents as a tensor of the stage";
  let arguments = (ins Arg<Mega_BufferType, "", [MemRead]>:$buffer,
                       OptionalAttr<Mega_AccessAttr>:$access);
  let results = (outs Mega_AnyValue:$result);
  let assemblyFormat = [{
    $buffer (`access` `(` $access^ `)`)? attr-dict
    `:` qualified(type($buffer)) `->` type($result)
  }];
  let hasVerifier = 1;
}

def Mega_LoadSumOp : Mega_Op<"load_sum"> {
  let summary = "adds the partial sums of a split reduction";
  let description = [{
    The buffer is (slots, ...); the result is the f32 sum over the slots that
    the producer filled, in ascending order, rounded once to the result type.
  }];
  let arguments = (ins Arg<Mega_BufferType, "", [MemRead]>:$buffer,
                       OptionalAttr<Mega_AccessAttr>:$access);
  let results = (outs Mega_Value:$result);
  let assemblyFormat = [{
    $buffer (`access` `(` $access^ `)`)? attr-dict
    `:` qualified(type($buffer)) `->` type($result)
  }];
  let hasVerifier = 1;
}

def Mega_StoreOp : Mega_Op<"store"> {
  let summary = "publishes a tensor of the stage in a buffer";
  let description = [{
    A value of the prologue, which every CTA holds, is written once: each CTA
    writes a share. A value of an epilogue is written by its tile's owner. A
    split anchor's value goes to a (slots, ...) buffer, one slot a contributor.
  }];
  let arguments = (ins Mega_AnyValue:$value,
                       Arg<Mega_BufferType, "", [MemWrite]>:$buffer,
                       OptionalAttr<Mega_AccessAttr>:$access);
  let assemblyFormat = [{
    $value `,` $buffer (`access` `(` $access^ `)`)? attr-dict
    `:` type($value) `,` qualified(type($buffer))
  }];
  let hasVerifier = 1;
}

//===----------------------------------------------------------------------===//
// Halves of mega.experts
//===----------------------------------------------------------------------===//

def Mega_ExpertGateUpOp : Mega_Anchor<"expert_gate_up", [Pure, SingleBlock]> {
  let summary = "gate and up projections of the chosen experts, activated";
  let description = [{
    Row j of the result is expert `ids[j]`'s hidden vector; the shared
    experts' rows follow. A tile is one eight-column strip of gate beside the
    same strip of up, so the activation needs no exchange.
  }];
  let arguments = (ins Mega_Value:$x, Mega_IdTensor:$ids,
      FlatSymbolRefAttr:$gate, FlatSymbolRefAttr:$up,
      OptionalAttr<FlatSymbolRefAttr>:$shared_gate,
      OptionalAttr<FlatSymbolRefAttr>:$shared_up,
      OptionalAttr<Mega_TilingAttr>:$tiling);
  let results = (outs Mega_Value:$result);
  let regions = (region SizedRegion<1>:$activation);
  let assemblyFormat = [{
    `(` $x `,` $ids `)` `gate` $gate `up` $up
    (`shared` $shared_gate^ `,` $shared_up)?
    (`tiling` `(` $tiling^ `)`)? attr-dict
    `:` type($x) `,` type($ids) `->` type($result) $activation
  }];
}

def Mega_ExpertDownOp : Mega_Anchor<"expert_down", [Pure]> {
  let summary = "down projections, weighted and summed over the experts";
  let arguments = (ins Mega_Value:$hidden, Mega_IdTensor:$ids,
      Mega_Value:$weights, FlatSymbolRefAttr:$down,
      OptionalAttr<FlatSymbolRefAttr>:$shared_down,
      OptionalAttr<Mega_TilingAttr>:$tiling);
  let results = (outs Mega_Value:$result);
  let assemblyFormat = [{
    `(` $hidden `,` $ids `,` $weights `)` `down` $down
    (`shared` $shared_down^)? (`tiling` `(` $tiling^ `)`)? attr-dict
    `:` type($hidden) `,` type($ids) `,` type($weights) `->` type($result)
  }];
}

//===----------------------------------------------------------------------===//
// Thirds of an absorbed mega.latent_attention
//===----------------------------------------------------------------------===//

def Mega_LatentQueryOp : Mega_Anchor<"latent_query", [Pure]> {
  let summary = "folds the key half of kv_b into the query";
  let description = [{
    `qa[h][c] = sum_{j<N} q[h][j] W[c][h*(N+V) + j]`, f32, with
    N = `keys`. A tile is one head's 128 latent channels.
  }];
  let arguments = (ins Mega_Value:$q, FlatSymbolRefAttr:$weight,
                       I64Attr:$keys,
                       OptionalAttr<Mega_TilingAttr>:$tiling);
  let results = (outs Mega_Value:$result);
  let assemblyFormat = [{
    $q `,` $weight `keys` `(` $keys `)` (`tiling` `(` $tiling^ `)`)? attr-dict
    `:` type($q) `->` type($result)
  }];
}

def Mega_LatentScoresOp : Mega_Anchor<"latent_scores", [ReadsState]> {
  let summary = "online softmax over one chunk of the caches and 16 heads, per tile";
  let description = [{
    Heads are taken 16 at a time. With G such groups, tile t is group t mod G
    and chunk t / G, an equal share of rows 0..position. For each of its heads
    it leaves the chunk's maximum score, the sum of exp(s - max), and the latent
    rows weighted by exp(s - max): `maximum` and `sum` are heads x chunks,
    `context` is chunks x heads x latent. Chunks that get no row leave nothing,
    and nobody reads them. Source: Milakov and Gimelshein, 2018; Flash-Decoding, 2023.
  }];
  let arguments = (ins Mega_Value:$absorbed, Mega_Value:$q, Index:$position,
                       FlatSymbolRefAttr:$latent, FlatSymbolRefAttr:$rope,
                       F64Attr:$scale, OptionalAttr<Mega_TilingAttr>:$tiling);
  let results = (outs Mega_Value:$maximum, Mega_Value:$sum,
                      Mega_Value:$context);
  let assemblyFormat = [{
    $absorbed `,` $q `,` $position `,` $latent `,` $rope
    `scale` `(` $scale `)` (`tiling` `(` $tiling^ `)`)? attr-dict
    `:` type($absorbed) `,` type($q) `->` type($maximum) `,` type($sum) `,`
    type($context)
  }];
}

def Mega_LatentValueOp : Mega_Anchor<"latent_value", [Pure]> {
  let summary = "joins the chunks and applies the value half of kv_b";
  let description = [{
    A tile is one head and 128 latent channels; its partial of
    `o[h][j] = sum_c ctx[h][c] W[c][h*(N+V) + N + j]` is one slot of a split
    reduction.
  }];
  let arguments = (ins Mega_Value:$maximum, Mega_Value:$sum,
                       Mega_Value:$context, FlatSymbolRefAttr:$weight,
                       OptionalAttr<Mega_TilingAttr>:$tiling);
  let results = (outs Mega_Value:$result);
  let assemblyFormat = [{
    $maximum `,` $sum `,` $context `,` $weight
    (`tiling` `(` $tiling^ `)`)? attr-dict
    `:` type($maximum) `,` type($sum) `,` type($context) `->` type($result)
  }];
}

def Mega_ElementwiseOp : Mega_Op<"elementwise", [Pure,
    DeclareOpInterfaceMethods<AnchorOpInterface>]> {
  let summary = "distributes the elements of a prologue value over the grid";
  let description = [{
    The anchor of a stage that has no reduction: the CTA that owns an element
    computes it alone, so the prologue before it costs each CTA only its share.
  }];
  let arguments = (ins Mega_Value:$x, OptionalAttr<Mega_TilingAttr>:$tiling);
  let results = (outs Mega_Value:$result);
  let assemblyFormat = [{
    $x (`tiling` `(` $tiling^ `)`)? attr-dict `:` type($x) `->` type($result)
  }];
}

#endif // MEGA_STAGE_OPS_TD
