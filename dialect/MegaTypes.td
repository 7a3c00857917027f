// SPDX-License-Identifier: Apache-2.0
#ifndef MEGA_TYPES_TD
#define MEGA_TYPES_TD

include "mlir/IR/AttrTypeBase.td"
include "MegaDialect.td"

class Mega_Type<string name, string typeMnemonic>
    : TypeDef<Mega_Dialect, name> {
  let mnemonic = typeMnemonic;
}

def Mega_QuantType : Mega_Type<"Quant", "quant"> {
  let summary = "group-quantised weight matrix, or a stack of them";
  let description = [{
    `!mega.quant<KxNxi4, group = g, scale = bf16, zero = bf16>` maps `K` inputs
    to `N` outputs; a leading dimension makes it a stack of experts. The value
    of element (k, n) is the bf16 number
    `bf16((code[k][n] - zero[k/g][n]) * scale[k/g][n])`.

    In a checkpoint, the weight `w` is three tensors: `w.w_q`, u8 of shape
    (K/2, N), whose low nibble is the even k; `w.scales` and `w.zeros`, of
    shape (K/g, N). Zeros are integers in 0..15. A stack has the expert axis
    first in all three.

    Preconditions: rank 2 or 3, static positive dimensions, i4 codes, bf16
    scales and zeros, K a multiple of the group, group a multiple of 32 that
    divides 128 or is a multiple of it.
  }];
  let parameters = (ins ArrayRefParameter<"int64_t">:$shape,
                        "::mlir::Type":$codeType, "int64_t":$group,
                        "::mlir::Type":$scaleType, "::mlir::Type":$zeroType);
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    /// Number of stacked matrices; 1 for a plain matrix.
    int64_t getStack() const {
      return getShape().size() == 3 ? getShape()[0] : 1;
    }
    int64_t getInFeatures() const { return getShape()[getShape().size() - 2]; }
    int64_t getOutFeatures() const { return getShape().back(); }
  }];
}

def Mega_BufferType : Mega_Type<"Buffer", "buffer"> {
  let summary = "device memory that outlives a stage";
  let description = [{
    `!mega.buffer<4096xf32>`: row-major elements in the kernel's workspace (or
    the caller's input and output vectors). Stages communicate through buffers
    and state only.
  }];
  let parameters = (ins ArrayRefParameter<"int64_t">:$shape,
                        "::mlir::Type":$elementType);
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    int64_t getNumElements() const;
    /// Size in bytes.
    int64_t getByteSize() const;
  }];
}

def Mega_CountersType : Mega_Type<"Counters", "counters"> {
  let summary = "a set of counters that stages signal and wait for";
}

#endif // MEGA_TYPES_TD
