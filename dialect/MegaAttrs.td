// SPDX-License-Identifier: Apache-2.0
#ifndef MEGA_ATTRS_TD
#define MEGA_ATTRS_TD

include "mlir/IR/AttrTypeBase.td"
include "MegaDialect.td"

class Mega_Attr<string name, string attrMnemonic>
    : AttrDef<Mega_Dialect, name> {
  let mnemonic = attrMnemonic;
}

def Mega_TargetAttr : Mega_Attr<"Target", "target"> {
  let summary = "the machine facts that passes may use, from a machine file";
  let parameters = (ins StringRefParameter<"">:$arch,
                        "int64_t":$ctas, "int64_t":$threads,
                        "int64_t":$shared_bytes);
  let assemblyFormat = "`<` struct(params) `>`";
  let description = [{
    `ctas` bounds the grid (streaming multiprocessors times resident CTAs) and
    sizes the workspace; the launch uses what the device really has. `threads`
    is the CTA size. `shared_bytes` is the shared memory that one CTA may use.
  }];
  let genVerifyDecl = 1;
}

def Mega_AccessAttr : Mega_Attr<"Access", "access"> {
  let summary = "which elements one tile touches";
  let description = [{
    The relation { d0 -> map(d0, s) : 0 <= s_i < extents_i } from a stage's
    tile number `d0` to elements: row-major numbers if the map has one result,
    an index for each dimension of the buffer if it has several. What falls
    outside the buffer is not touched. An extent of -1 is the run-time position.
    Example: `#mega.access<affine_map<(d0)[s0] -> (d0 * 16 + s0)>, [16]>`.
  }];
  let parameters = (ins "::mlir::AffineMapAttr":$map,
                        OptionalArrayRefParameter<"int64_t">:$extents);
  let assemblyFormat = "`<` $map `,` `[` (`]`) : ($extents^ `]`)? `>`";
  let genVerifyDecl = 1;
}

def Mega_TilingAttr : Mega_Attr<"Tiling", "tiling"> {
  let summary = "an anchor's share of its stage's tile list";
  let description = [{
    The anchor owns tiles [begin, begin + count) of the stage; a tile covers
    `extent` consecutive outputs (rows, columns or heads, as the op says).
    `split` tells that the tile's reduction axis is itself divided among CTAs,
    which then publish partial sums for the reader to add.
  }];
  let parameters = (ins "int64_t":$begin, "int64_t":$count,
                        "int64_t":$extent,
                        DefaultValuedParameter<"bool", "false">:$split);
  let assemblyFormat = "`<` struct(params) `>`";
  let genVerifyDecl = 1;
}

#endif // MEGA_ATTRS_TD
