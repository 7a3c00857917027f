// SPDX-License-Identifier: Apache-2.0
//
// START HERE. The description below is the map of the whole compiler.
// Include order: MegaDialect -> MegaEnums -> MegaTypes -> MegaAttrs ->
// MegaInterfaces -> Mega{Block,Stage,Schedule}Ops -> Mega (umbrella). Each
// file includes only files to its left, so there are no cycles.

#ifndef MEGA_DIALECT_TD
#define MEGA_DIALECT_TD

include "mlir/IR/OpBase.td"
include "mlir/IR/DialectBase.td"

def Mega_Dialect : Dialect {
  let name = "mega";
  let cppNamespace = "::mega";
  let summary = "One decode block, from its maths to one cooperative kernel";
  let description = [{
    A file shows its level by its ops. Passes lower one level at a time, and a
    verify pass stands at each boundary.

    ```
    level 0  block     mega.block      what: value-semantic maths on tensors,
                                       weights and state named by symbol
        | -mega-decompose, -mega-form-stages
    level 1  stages    mega.program    how it is parallel: mega.stage over
                                       buffers, one list of tiles per stage
        | -mega-partition, -mega-schedule-phases
    level 2  schedule  mega.program    when: mega.phase, and mega.grid_barrier
                                       with the edges that it covers
        | -mega-plan-memory
    level 3  kernel    mega.kernel     where: workspace and weight offsets,
                                       launch shape
        | emit                         one readable .cu file
    ```

    Invariants that hold at every level:

    * **C1** Result element types are the rounding points. Arithmetic inside an
      op is f32; a `bf16` result is rounded once, to nearest even, where it is
      produced. No pass moves or drops a rounding unless the op carries an
      explicit relaxation attribute (`absorb`), and the manifest lists it.
    * **C2** Symbol names are the checkpoint's names, so a state_dict binds by
      name. A weight of type `!mega.quant` named `w` owns the three checkpoint
      tensors `w.w_q`, `w.scales` and `w.zeros`.
    * **C3** Every dimension is static except the leading one of a cache, whose
      length is the run-time position.
    * **C4** The target (`mega.target` on the module) is the only fact about a
      GPU, and only passes from decompose on read it.
    * **C5** At level 1 and below, tensors live only inside one stage. What
      crosses stages is a `!mega.buffer` or a state symbol.
  }];
  let useDefaultTypePrinterParser = 1;
  let useDefaultAttributePrinterParser = 1;
  let dependentDialects = ["::mlir::arith::ArithDialect",
                           "::mlir::math::MathDialect"];
  let extraClassDeclaration = [{
    void registerTypes();
    void registerAttributes();
  }];
}

class Mega_Op<string mnemonic, list<Trait> traits = []>
    : Op<Mega_Dialect, mnemonic, traits>;

#endif // MEGA_DIALECT_TD
