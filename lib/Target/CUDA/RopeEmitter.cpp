// SPDX-License-Identifier: Apache-2.0
/// \file
/// Rotary embedding: the table of frequencies, and one element.

#include "Names.h"
#include "StageEmitter.h"

#include "mega/Analysis/Rope.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/bit.h"

using namespace mlir;
using namespace mega;

std::string mega::ropeTableName(RopeOp op) {
  // By theta's bits: two thetas never share a name.
  float theta = op.getTheta().convertToDouble();
  return "kRope" + llvm::utohexstr(llvm::bit_cast<uint32_t>(theta)) + "Of" +
         str(op.getSize());
}

std::string mega::ropeTableDefinition(RopeOp op) {
  std::string text = "__device__ const float " + ropeTableName(op) + "[" +
                     str(op.getSize() / 2) + "] = {";
  for (auto [i, frequency] : llvm::enumerate(ropeInverseFrequencies(
           op.getSize(), op.getTheta().convertToDouble())))
    text += (i == 0       ? ""
             : i % 4 == 0 ? ",\n    "
                          : ", ") +
            (i == 0 ? "\n    " : std::string()) + floatLiteral(frequency);
  return text + "};\n";
}

std::string mega::ropeElement(RopeOp op, const ElementExpr &at,
                              const std::string &index) {
  if (op.getKind() == RopeKind::None)
    return at(index);
  int64_t last = typeOf(op.getX()).getShape().back();
  int64_t offset = op.getOffset(), size = op.getSize();
  std::string local =
      "((" + index + ") % " + str(last) + " - " + str(offset) + ")";
  std::string odd, partner, pair;
  if (op.getKind() == RopeKind::Interleaved) {
    odd = local + " % 2 != 0";
    partner = "((" + index + ") + (" + odd + " ? -1 : 1))";
    pair = local + " / 2";
  } else {
    odd = local + " >= " + str(size / 2);
    partner = "((" + index + ") + (" + odd + " ? -" + str(size / 2) + " : " +
              str(size / 2) + "))";
    pair = local + " % " + str(size / 2);
  }
  std::string rotated = "mega::rotate(" + at(index) + ", " + at(partner) +
                        ", " + odd + ", " + ropeTableName(op) + "[" + pair +
                        "], int(p.position))";
  if (offset == 0 && size == last)
    return rotated;
  return "(" + local + " >= 0 && " + local + " < " + str(size) + " ? " +
         rotated + " : " + at(index) + ")";
}
