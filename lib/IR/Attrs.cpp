// SPDX-License-Identifier: Apache-2.0
/// \file
/// #mega.target, #mega.access, #mega.tiling and the enum attributes.

#include "mega/IR/Mega.h"

#include "mlir/IR/AffineMap.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace mega;

#define GET_ATTRDEF_CLASSES
#include "mega/IR/MegaAttrs.cpp.inc"

void MegaDialect::registerAttributes() {
  addAttributes<
#define GET_ATTRDEF_LIST
#include "mega/IR/MegaAttrs.cpp.inc"
      >();
}

LogicalResult TargetAttr::verify(function_ref<InFlightDiagnostic()> emitError,
                                 StringRef arch, int64_t ctas, int64_t threads,
                                 int64_t sharedBytes) {
  if (!arch.starts_with("sm_"))
    return emitError() << "target has arch '" << arch
                       << "', expected one like sm_90a";
  if (ctas <= 0)
    return emitError() << "target has " << ctas
                       << " ctas, expected a positive number";
  if (threads < 128 || threads > 1024 || threads % 128 != 0)
    return emitError() << "target has " << threads
                       << " threads, expected a multiple of 128 up to 1024";
  if (sharedBytes < 16384)
    return emitError() << "target has " << sharedBytes
                       << " bytes of shared memory, expected at least 16384";
  return success();
}

LogicalResult AccessAttr::verify(function_ref<InFlightDiagnostic()> emitError,
                                 AffineMapAttr map, ArrayRef<int64_t> extents) {
  if (map.getValue().getNumDims() != 1)
    return emitError() << "access has " << map.getValue().getNumDims()
                       << " tile dimensions, expected 1";
  if (map.getValue().getNumSymbols() != extents.size())
    return emitError() << "access has " << extents.size()
                       << " extents, expected one per symbol ("
                       << map.getValue().getNumSymbols() << ")";
  return success();
}

LogicalResult TilingAttr::verify(function_ref<InFlightDiagnostic()> emitError,
                                 int64_t begin, int64_t count, int64_t extent,
                                 bool split) {
  if (begin < 0 || count <= 0 || extent <= 0)
    return emitError() << "tiling has begin " << begin << ", count " << count
                       << " and extent " << extent
                       << ", expected a non-negative begin and positive count "
                          "and extent";
  return success();
}
