// SPDX-License-Identifier: Apache-2.0
/// \file
/// Builds Presburger relations from affine maps.

#include "mega/Analysis/TileRelation.h"

#include "mlir/IR/AffineExpr.h"

using namespace mlir;
using namespace mega;
using presburger::BoundType;
using presburger::IntegerRelation;
using presburger::PresburgerSpace;
using presburger::VarKind;

namespace {

/// A sum of variables and a constant. Variables are columns of the relation,
/// which stay where they are: new ones are locals, which come last.
struct LinearForm {
  SmallVector<std::pair<unsigned, int64_t>> terms;
  int64_t constant = 0;

  LinearForm &operator+=(const LinearForm &other) {
    llvm::append_range(terms, other.terms);
    constant += other.constant;
    return *this;
  }
  LinearForm &operator*=(int64_t factor) {
    for (auto &[variable, coefficient] : terms)
      coefficient *= factor;
    constant *= factor;
    return *this;
  }
};

/// Grows a relation from one tile, column 0, to another, column 1.
class RelationBuilder {
public:
  RelationBuilder(TileRange first, TileRange second)
      : relation(PresburgerSpace::getRelationSpace(/*numDomain=*/1,
                                                   /*numRange=*/1)) {
    addBounds(0, first.begin, first.end);
    addBounds(1, second.begin, second.end);
  }

  IntegerRelation take() { return std::move(relation); }

  /// A new variable in [0, extent).
  unsigned addLocal(int64_t extent) {
    relation.appendVar(VarKind::Local);
    unsigned variable = relation.getNumVars() - 1;
    addBounds(variable, 0, extent);
    return variable;
  }

  /// `expr` with d0 at `dim` and symbol i in column `symbols + i`.
  LinearForm form(AffineExpr expr, const LinearForm &dim, unsigned symbols) {
    if (auto constant = dyn_cast<AffineConstantExpr>(expr))
      return {{}, constant.getValue()};
    if (isa<AffineDimExpr>(expr))
      return dim;
    if (auto symbol = dyn_cast<AffineSymbolExpr>(expr))
      return {{{symbols + symbol.getPosition(), 1}}, 0};
    auto binary = cast<AffineBinaryOpExpr>(expr);
    LinearForm lhs = form(binary.getLHS(), dim, symbols);
    if (binary.getKind() == AffineExprKind::Add)
      return lhs += form(binary.getRHS(), dim, symbols);
    // Affine: the other operators have a constant on their right.
    int64_t rhs = cast<AffineConstantExpr>(binary.getRHS()).getValue();
    if (binary.getKind() == AffineExprKind::Mul)
      return lhs *= rhs;
    if (binary.getKind() == AffineExprKind::CeilDiv)
      lhs.constant += rhs - 1;
    unsigned quotient = relation.addLocalFloorDiv(row(lhs), rhs);
    LinearForm result{{{quotient, 1}}, 0};
    if (binary.getKind() != AffineExprKind::Mod)
      return result;
    return lhs += (result *= -rhs);
  }

  /// The row-major number of an element that the tile in column `tile` touches.
  LinearForm element(const TileAccess &access, unsigned tile) {
    unsigned symbols = relation.getNumVars();
    for (int64_t extent : access.extents)
      addLocal(extent);
    bool flat = access.map.getNumResults() == 1;
    int64_t count = 1;
    for (int64_t dim : access.shape)
      count *= dim;
    LinearForm number;
    for (auto [index, expr] : llvm::enumerate(access.map.getResults())) {
      LinearForm position = form(expr, {{{tile, 1}}, 0}, symbols);
      int64_t size = flat ? count : access.shape[index];
      addInside(position, size);
      (number *= size) += position;
    }
    return number;
  }

  void addEqual(const LinearForm &a, LinearForm b) {
    LinearForm difference = a;
    difference += (b *= -1);
    relation.addEquality(row(difference));
  }

private:
  void addBounds(unsigned variable, int64_t begin, int64_t end) {
    relation.addBound(BoundType::LB, variable, begin);
    relation.addBound(BoundType::UB, variable, end - 1);
  }

  /// 0 <= form < size.
  void addInside(const LinearForm &form, int64_t size) {
    relation.addInequality(row(form));
    LinearForm rest = form;
    (rest *= -1).constant += size - 1;
    relation.addInequality(row(rest));
  }

  SmallVector<int64_t> row(const LinearForm &form) const {
    SmallVector<int64_t> row(relation.getNumCols(), 0);
    for (auto [variable, coefficient] : form.terms)
      row[variable] += coefficient;
    row.back() = form.constant;
    return row;
  }

  IntegerRelation relation;
};

} // namespace

IntegerRelation mega::sharedElements(const TileAccess &a, const TileAccess &b) {
  RelationBuilder builder({a.begin, a.end}, {b.begin, b.end});
  LinearForm first = builder.element(a, 0);
  builder.addEqual(first, builder.element(b, 1));
  return builder.take();
}

IntegerRelation mega::sharedBytes(const TileAccess &a, const TileAccess &b) {
  RelationBuilder builder({a.begin, a.end}, {b.begin, b.end});
  auto byte = [&](const TileAccess &access, unsigned tile) {
    auto buffer = cast<Value>(access.resource);
    int64_t size = cast<BufferType>(buffer.getType())
                       .getElementType()
                       .getIntOrFloatBitWidth() /
                   8;
    LinearForm number = builder.element(access, tile);
    number *= size;
    number.terms.push_back({builder.addLocal(size), 1});
    number.constant += *buffer.getDefiningOp<AllocOp>().getOffset();
    return number;
  };
  LinearForm first = byte(a, 0);
  builder.addEqual(first, byte(b, 1));
  return builder.take();
}

IntegerRelation mega::sameCounter(AffineMap signal, TileRange signallers,
                                  AffineMap wait, TileRange waiters) {
  RelationBuilder builder(signallers, waiters);
  LinearForm first =
      builder.form(signal.getResult(0), {{{0, 1}}, -signallers.begin}, 0);
  builder.addEqual(first, builder.form(wait.getResult(0), {{{1, 1}}, 0}, 0));
  return builder.take();
}

IntegerRelation mega::allPairs(TileRange first, TileRange second) {
  return RelationBuilder(first, second).take();
}
