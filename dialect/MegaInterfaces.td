// SPDX-License-Identifier: Apache-2.0
#ifndef MEGA_INTERFACES_TD
#define MEGA_INTERFACES_TD

include "mlir/IR/OpBase.td"

def AnchorOpInterface : OpInterface<"AnchorOpInterface"> {
  let cppNamespace = "::mega";
  let description = [{
    An op whose tiles a stage distributes over the grid. Everything before it
    in the stage is computed by each CTA for itself; everything after it that
    uses its results is computed by the CTA that owns the tile.
  }];
  let methods = [
    InterfaceMethod<"The anchor's tiles, null before partition.",
        "::mega::TilingAttr", "getTilingAttr">,
    InterfaceMethod<"Sets the anchor's tiles.",
        "void", "setTilingAttr", (ins "::mega::TilingAttr":$tiling)>,
    InterfaceMethod<"Outputs that one tile covers.",
        "int64_t", "getTileExtent">,
    InterfaceMethod<"Length of the anchor's tile list.",
        "int64_t", "getTileCount">,
    InterfaceMethod<"Whether partial sums over the reduction axis may be "
        "published and added by the reader.",
        "bool", "canSplit">,
    InterfaceMethod<"Equal steps of one tile's reduction: what CTAs share out "
        "where the anchor is split.",
        "int64_t", "getReductionSteps">
  ];
}

#endif // MEGA_INTERFACES_TD
