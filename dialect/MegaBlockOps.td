// SPDX-License-Identifier: Apache-2.0
//
// Level 0: what a block computes. Value semantics; weights and state by symbol.

#ifndef MEGA_BLOCK_OPS_TD
#define MEGA_BLOCK_OPS_TD

include "mlir/IR/OpBase.td"
include "mlir/IR/SymbolInterfaces.td"
include "mlir/Interfaces/FunctionInterfaces.td"
include "mlir/Interfaces/SideEffectInterfaces.td"
include "MegaAttrs.td"
include "MegaEnums.td"
include "MegaInterfaces.td"
include "MegaTypes.td"

def Mega_StateResource : Resource<"::mega::StateResource">;

/// A tensor of bf16 or f32, all dimensions static.
def Mega_Value : AnyTypeOf<[StaticShapeTensorOf<[BF16, F32]>],
                           "static tensor of bf16 or f32">;
def Mega_IdTensor : 1DTensorOf<[I32]>;

class Mega_PureOp<string mnemonic, list<Trait> traits = []>
    : Mega_Op<mnemonic, !listconcat([Pure], traits)>;
class Mega_SymbolUser<string mnemonic, list<Trait> traits = []>
    : Mega_Op<mnemonic,
        !listconcat([DeclareOpInterfaceMethods<SymbolUserOpInterface>],
                    traits)>;
def ReadsState : MemoryEffects<[MemRead<Mega_StateResource>]>;
def WritesState : MemoryEffects<[MemWrite<Mega_StateResource>]>;
def UpdatesState : MemoryEffects<[MemRead<Mega_StateResource>,
                                  MemWrite<Mega_StateResource>]>;

//===----------------------------------------------------------------------===//
// Declarations
//===----------------------------------------------------------------------===//

def Mega_WeightOp : Mega_Op<"weight", [Symbol]> {
  let summary = "a constant tensor that the runtime binds by name";
  let description = [{
    ```mlir
    mega.weight @"blocks.0.attn.q_proj" : !mega.quant<2304x4096xi4,
        group = 128, scale = bf16, zero = bf16>
    mega.weight @"blocks.0.attn_norm" : tensor<2304xbf16>
    ```
    Preconditions: a static bf16 or f32 tensor, or a `!mega.quant`.
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, TypeAttr:$type);
  let assemblyFormat = "$sym_name `:` $type attr-dict";
  let hasVerifier = 1;
}

def Mega_StateOp : Mega_Op<"state", [Symbol]> {
  let summary = "memory that the block carries from one step to the next";
  let description = [{
    ```mlir
    mega.state @"0.S" : tensor<32x128x128xf32>
    mega.state @"3.c_kv" : tensor<?x512xbf16>
    ```
    A leading `?` is a cache: it holds `position` rows before a step and one
    more after it.
    Preconditions: bf16 or f32; only the leading dimension may be dynamic, and
    then the rank is at least 2.
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, TypeAttr:$type);
  let assemblyFormat = "$sym_name `:` $type attr-dict";
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    ::mlir::RankedTensorType getTensorType() {
      return ::mlir::cast<::mlir::RankedTensorType>(getType());
    }
    /// True for a cache, which grows by one row a step.
    bool isCache() { return !getTensorType().hasStaticShape(); }
  }];
}

def Mega_BlockOp : Mega_Op<"block", [FunctionOpInterface, IsolatedFromAbove,
                                     SingleBlock]> {
  let summary = "one decode block: a step from a hidden vector to the next";
  let description = [{
    ```mlir
    mega.block @motif(%x: tensor<2304xbf16>) -> tensor<2304xbf16> {
      ...
      mega.return %y : tensor<2304xbf16>
    }
    ```
    Preconditions: one argument and one result, both rank-1 tensors.
  }];
  let arguments = (ins SymbolNameAttr:$sym_name,
      TypeAttrOf<FunctionType>:$function_type,
      OptionalAttr<DictArrayAttr>:$arg_attrs,
      OptionalAttr<DictArrayAttr>:$res_attrs);
  let regions = (region SizedRegion<1>:$body);
  let hasCustomAssemblyFormat = 1;
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    ::llvm::ArrayRef<::mlir::Type> getArgumentTypes() {
      return getFunctionType().getInputs();
    }
    ::llvm::ArrayRef<::mlir::Type> getResultTypes() {
      return getFunctionType().getResults();
    }
    ::mlir::Region *getCallableRegion() { return &getBody(); }
  }];
}

def Mega_ReturnOp : Mega_PureOp<"return", [Terminator, HasParent<"BlockOp">]> {
  let summary = "ends a block with its result";
  let arguments = (ins Variadic<AnyRankedTensor>:$results);
  let assemblyFormat = "$results `:` type($results) attr-dict";
  let hasVerifier = 1;
}

def Mega_PositionOp : Mega_PureOp<"position"> {
  let summary = "tokens seen before this one: the rows in every cache";
  let results = (outs Index:$result);
  let assemblyFormat = "attr-dict";
}

def Mega_YieldOp : Mega_PureOp<"yield", [Terminator,
    ParentOneOf<["MapOp", "ExpertsOp", "ExpertGateUpOp"]>]> {
  let summary = "the scalar that an elementwise region computes";
  let arguments = (ins F32:$value);
  let assemblyFormat = "$value attr-dict";
}

//===----------------------------------------------------------------------===//
// Elementwise work and views
//===----------------------------------------------------------------------===//

def Mega_MapOp : Mega_PureOp<"map", [SingleBlock]> {
  let summary = "elementwise region";
  let description = [{
    Each operand's element is widened to f32, the region computes in f32 with
    `arith` and `math` ops, and the yielded value is rounded once to the result
    element type.

    ```mlir
    %h = mega.map(%a = %x, %b = %y)
        : (tensor<8xbf16>, tensor<8xbf16>) -> tensor<8xbf16> {
      %s = arith.addf %a, %b : f32
      mega.yield %s
    }
    ```
    Preconditions: all operands and the result have one shape; the region is
    straight-line code of the supported scalar ops.
  }];
  let arguments = (ins Variadic<Mega_Value>:$inputs);
  let results = (outs Mega_Value:$result);
  let regions = (region SizedRegion<1>:$body);
  let hasCustomAssemblyFormat = 1;
  let hasVerifier = 1;
}

def Mega_ReshapeOp : Mega_PureOp<"reshape"> {
  let summary = "the same elements under another shape";
  let arguments = (ins Mega_Value:$x);
  let results = (outs Mega_Value:$result);
  let assemblyFormat = "$x attr-dict `:` type($x) `->` type($result)";
  let hasVerifier = 1;
}

def Mega_SliceOp : Mega_PureOp<"slice"> {
  let summary = "a range of the last dimension";
  let description = [{
    ```mlir
    %c = mega.slice %kv from 0 : tensor<576xbf16> -> tensor<512xbf16>
    ```
  }];
  let arguments = (ins Mega_Value:$x, I64Attr:$offset);
  let results = (outs Mega_Value:$result);
  let assemblyFormat = [{
    $x `from` $offset attr-dict `:` type($x) `->` type($result)
  }];
  let hasVerifier = 1;
}

//===----------------------------------------------------------------------===//
// Norms, projections, mixing
//===----------------------------------------------------------------------===//

def Mega_RmsNormOp : Mega_SymbolUser<"rms_norm", [Pure]> {
  let summary = "root-mean-square norm over the last dimension";
  let description = [{
    `y = x / sqrt(mean(x^2) + eps) * w` in f32, rounded once. With
    `unit_offset` the factor is `1 + w`. Source: Zhang and Sennrich, 2019.

    ```mlir
    %n = mega.rms_norm %x, @w eps(1.0e-6)
        : tensor<2304xbf16> -> tensor<2304xbf16>
    ```
    Preconditions: `@w` is a rank-1 tensor of the last dimension's size.
  }];
  let arguments = (ins Mega_Value:$x, FlatSymbolRefAttr:$weight, F64Attr:$eps,
                       UnitAttr:$unit_offset);
  let results = (outs Mega_Value:$result);
  let assemblyFormat = [{
    $x `,` $weight `eps` `(` $eps `)` (`unit_offset` $unit_offset^)? attr-dict
    `:` type($x) `->` type($result)
  }];
  let hasVerifier = 1;
}

class Mega_Anchor<string mnemonic, list<Trait> traits = []>
    : Mega_SymbolUser<mnemonic,
        !listconcat(traits, [DeclareOpInterfaceMethods<AnchorOpInterface>])>;

def Mega_LinearOp : Mega_Anchor<"linear", [Pure]> {
  let summary = "matrix times vector, weight by name";
  let description = [{
    `y[n] = sum_k x[k] W[k][n]`, accumulated in f32. A quantised weight is
    inputs x outputs; a plain tensor weight is outputs x inputs, as checkpoints
    store it.

    ```mlir
    %q = mega.linear %n, @"blocks.0.attn.q_proj"
        : tensor<2304xbf16> -> tensor<4096xbf16>
    ```
    Preconditions: rank-1 operand and result that fit the weight.
  }];
  let arguments = (ins Mega_Value:$x, FlatSymbolRefAttr:$weight,
                       OptionalAttr<Mega_TilingAttr>:$tiling);
  let results = (outs Mega_Value:$result);
  let assemblyFormat = [{
    $x `,` $weight (`tiling` `(` $tiling^ `)`)? attr-dict
    `:` type($x) `->` type($result)
  }];
  let hasVerifier = 1;
}

def Mega_ShortConvOp : Mega_SymbolUser<"short_conv", [UpdatesState]> {
  let summary = "depthwise causal convolution over the last few tokens";
  let description = [{
    With T taps, `y[c] = sum_{t<T-1} state[t][c] w[c][t] + x[c] w[c][T-1]`;
    the state then drops its oldest row and takes `x` as its newest. Tap 0
    meets the oldest token. `index` picks a slice of a stacked weight.

    ```mlir
    %y = mega.short_conv %q, @conv_w[0], @"0.cq"
        : tensor<4096xbf16> -> tensor<4096xf32>
    ```
    Preconditions: weight (C, T), or (S, C, T) with an index below S; state
    (T-1, C) with the operand's element type.
  }];
  let arguments = (ins Mega_Value:$x, FlatSymbolRefAttr:$weight,
                       OptionalAttr<I64Attr>:$index,
                       FlatSymbolRefAttr:$state);
  let results = (outs Mega_Value:$result);
  let assemblyFormat = [{
    $x `,` $weight (`[` $index^ `]`)? `,` $state attr-dict
    `:` type($x) `->` type($result)
  }];
  let hasVerifier = 1;
}

def Mega_DeltaRuleOp : Mega_Anchor<"delta_rule", [UpdatesState]> {
  let summary = "one step of a gated delta-rule recurrence, per head";
  let description = [{
    For state S (H, K, V) in f32, in this order:
    ```
    S[i][j] *= D[i]                      decay factor, by `decay` kind
    p[j]     = sum_i S[i][j] k[i]
    S[i][j] += beta k[i] (v[j] - p[j])
    o[j]     = sum_i S[i][j] q[i]
    ```
    `decay(channel)` takes D of shape (H, K), `decay(head)` of shape (H), and
    `decay(none)` takes no operand. Sources: Yang et al., Gated Delta Networks,
    2024; Kimi Linear, 2025.

    ```mlir
    %o = mega.delta_rule %q, %k, %v, %beta, @"0.S" decay(channel) %d
        : tensor<32x128xf32>, tensor<32x128xbf16>, tensor<32x128xbf16>,
          tensor<32xf32>, tensor<32x128xf32> -> tensor<32x128xbf16>
    ```
  }];
  let arguments = (ins Mega_Value:$q, Mega_Value:$k, Mega_Value:$v,
                       Mega_Value:$beta, Optional<Mega_Value>:$decay,
                       FlatSymbolRefAttr:$state,
                       Mega_DecayKind:$kind,
                       OptionalAttr<Mega_TilingAttr>:$tiling);
  let results = (outs Mega_Value:$result);
  let assemblyFormat = [{
    $q `,` $k `,` $v `,` $beta `,` $state `decay` `(` custom<Keyword>($kind) `)` ($decay^)?
    (`tiling` `(` $tiling^ `)`)? attr-dict
    `:` type($q) `,` type($k) `,` type($v) `,` type($beta) (`,` type($decay)^)?
    `->` type($result)
  }];
  let hasVerifier = 1;
}

def Mega_RopeOp : Mega_PureOp<"rope"> {
  let summary = "rotary position embedding on part of the last dimension";
  let description = [{
    Rotates elements [offset, offset + size) of the last dimension and passes
    the others through. With `i < size / 2`, `angle = position * theta^(-2i /
    size)` in f32: `interleaved` pairs (2i, 2i + 1), `half` pairs (i, i + size
    / 2), `none` rotates nothing. Source: Su et al., RoFormer, 2021.

    ```mlir
    %r = mega.rope %q, %pos interleaved range(128, 64) theta(10000.0)
        : tensor<32x192xbf16> -> tensor<32x192xbf16>
    ```
    Preconditions: size even and positive, range inside the last dimension.
  }];
  let arguments = (ins Mega_Value:$x, Index:$position, Mega_RopeKind:$kind,
                       I64Attr:$offset, I64Attr:$size, F64Attr:$theta);
  let results = (outs Mega_Value:$result);
  let assemblyFormat = [{
    $x `,` $position custom<Keyword>($kind) `range` `(` $offset `,` $size `)`
    `theta` `(` $theta `)` attr-dict `:` type($x) `->` type($result)
  }];
  let hasVerifier = 1;
}

//===----------------------------------------------------------------------===//
// Attention
//===----------------------------------------------------------------------===//

def Mega_CacheAppendOp : Mega_SymbolUser<"cache_append", [WritesState]> {
  let summary = "writes row `position` of a cache";
  let description = [{
    ```mlir
    mega.cache_append %c, %pos, @"3.c_kv" : tensor<512xbf16>
    ```
    Preconditions: the cache's row has the operand's element count and type.
  }];
  let arguments = (ins Mega_Value:$x, Index:$position,
                       FlatSymbolRefAttr:$state);
  let assemblyFormat = [{
    $x `,` $position `,` $state attr-dict `:` type($x)
  }];
}

def Mega_LatentAttentionOp : Mega_SymbolUser<"latent_attention",
                                             [ReadsState]> {
  let summary = "multi-head latent attention over a latent and a rope cache";
  let description = [{
    The caches hold rows 0..position, the new one included. `@kv_b` maps a
    latent row to each head's key part (first) and value part, adjacent:
    column h*(N+V) + j, with N = head size of q less the rope cache's width.
    ```
    kv[l]   = bf16(latent[l] W)
    s[l][h] = (q[h][:N] . kv[l][h][:N] + q[h][N:] . rope[l]) * scale
    o[h]    = sum_l softmax_l(s)[l][h] kv[l][h][N:]
    ```
    in f32. `absorb` is a relaxation: it permits folding W into q and o, which
    drops the bf16 rounding of kv. Source: DeepSeek-V2, 2024, section 2.1.

    ```mlir
    %o = mega.latent_attention %q, %pos, @"3.c_kv", @"3.k_rope", @kv_b
        scale(0.0721687824) absorb
        : tensor<32x192xbf16> -> tensor<32x128xbf16>
    ```
  }];
  let arguments = (ins Mega_Value:$q, Index:$position,
                       FlatSymbolRefAttr:$latent, FlatSymbolRefAttr:$rope,
                       FlatSymbolRefAttr:$weight, F64Attr:$scale,
                       UnitAttr:$absorb);
  let results = (outs Mega_Value:$result);
  let assemblyFormat = [{
    $q `,` $position `,` $latent `,` $rope `,` $weight `scale` `(` $scale `)`
    (`absorb` $absorb^)? attr-dict `:` type($q) `->` type($result)
  }];
  let hasVerifier = 1;
}

//===----------------------------------------------------------------------===//
// Mixture of experts
//===----------------------------------------------------------------------===//

def Mega_RouterOp : Mega_SymbolUser<"router", [Pure]> {
  let summary = "chooses experts and their weights from logits";
  let description = [{
    Scores are the f32 softmax or sigmoid of the logits. The top-k are taken in
    descending order of score (plus `bias`, if given, which only steers the
    choice); ties go to the lower index. `renormalize(eps)` divides the chosen
    scores by their sum plus eps, then `scale` multiplies. `probe` names the
    choice for inspection.

    ```mlir
    %ids, %w = mega.router %logits softmax renormalize(1.0e-9) scale(2.446)
        probe("0.experts") : tensor<64xbf16> -> tensor<8xi32>, tensor<8xf32>
    ```
    Preconditions: top-k (the results' size) is at most the logits' size.
  }];
  let arguments = (ins Mega_Value:$logits, Mega_ScoreKind:$score,
                       OptionalAttr<FlatSymbolRefAttr>:$bias,
                       OptionalAttr<F64Attr>:$renormalize, F64Attr:$scale,
                       OptionalAttr<StrAttr>:$probe);
  let results = (outs Mega_IdTensor:$ids, Mega_Value:$weights);
  let assemblyFormat = [{
    $logits custom<Keyword>($score) (`bias` `(` $bias^ `)`)?
    (`renormalize` `(` $renormalize^ `)`)? `scale` `(` $scale `)`
    (`probe` `(` $probe^ `)`)? attr-dict
    `:` type($logits) `->` type($ids) `,` type($weights)
  }];
  let hasVerifier = 1;
}

def Mega_ExpertsOp : Mega_SymbolUser<"experts", [Pure, SingleBlock]> {
  let summary = "gated MLPs of the chosen experts, weighted and summed";
  let description = [{
    `y = sum_j w_j (act(x Wg_j, x Wu_j) Wd_j)` over the chosen experts in order,
    then plus the shared experts with weight 1; f32 throughout, rounded once at
    the result. The region is the activation on (gate, up).

    ```mlir
    %y = mega.experts(%n, %ids, %w) gate @gate up @up down @down
        shared @s_gate, @s_up, @s_down
        : tensor<2304xbf16>, tensor<8xi32>, tensor<8xf32> -> tensor<2304xbf16> {
    ^bb0(%g: f32, %u: f32):
      ...
      mega.yield %h
    }
    ```
    Preconditions: rank-3 quantised stacks; gate and up (E, K, M), down
    (E, M, N); the shared ones alike with their own E.
  }];
  let arguments = (ins Mega_Value:$x, Mega_IdTensor:$ids, Mega_Value:$weights,
      FlatSymbolRefAttr:$gate, FlatSymbolRefAttr:$up, FlatSymbolRefAttr:$down,
      OptionalAttr<FlatSymbolRefAttr>:$shared_gate,
      OptionalAttr<FlatSymbolRefAttr>:$shared_up,
      OptionalAttr<FlatSymbolRefAttr>:$shared_down);
  let results = (outs Mega_Value:$result);
  let regions = (region SizedRegion<1>:$activation);
  let assemblyFormat = [{
    `(` $x `,` $ids `,` $weights `)` `gate` $gate `up` $up `down` $down
    (`shared` $shared_gate^ `,` $shared_up `,` $shared_down)? attr-dict
    `:` type($x) `,` type($ids) `,` type($weights) `->` type($result)
    $activation
  }];
  let hasVerifier = 1;
}

#endif // MEGA_BLOCK_OPS_TD
