// SPDX-License-Identifier: Apache-2.0
/// \file
/// Level 2 to 3: addresses. Buffers share workspace when their live ranges are
/// disjoint; weights lie in the order in which the kernel reads
/// them, packed for the unit that reads them.

#include "mega/Analysis/Certificate.h"
#include "mega/Transforms/Passes.h"

#include "mlir/IR/Builders.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/TypeSwitch.h"
#include "llvm/Support/MathExtras.h"

namespace mega {
#define GEN_PASS_DEF_PLANMEMORYPASS
#include "mega/Transforms/Passes.h.inc"
} // namespace mega

using namespace mlir;
using namespace mega;

namespace {

/// Alignment of buffers and weights: two 128-byte lines, so that neighbours
/// never share one and 16-byte accesses are aligned.
constexpr int64_t kAlignment = 256;

//===----------------------------------------------------------------------===//
// Workspace
//===----------------------------------------------------------------------===//

/// Barriers before the first and the last stage that touches a buffer: phases
/// without a barrier between them run at the same time.
struct LiveRange {
  int64_t first, last;
  bool overlaps(const LiveRange &other) const {
    return first <= other.last && other.first <= last;
  }
};

llvm::MapVector<AllocOp, LiveRange> computeLiveRanges(ProgramOp program) {
  int64_t barriers = 0;
  llvm::DenseMap<Operation *, int64_t> before;
  for (Operation &op : program.getBody().front()) {
    barriers += isa<GridBarrierOp>(op);
    before[&op] = barriers;
  }
  llvm::MapVector<AllocOp, LiveRange> ranges;
  for (AllocOp alloc : program.getBody().getOps<AllocOp>()) {
    LiveRange range{barriers + 1, -1};
    for (Operation *user : alloc.getBuffer().getUsers()) {
      int64_t index = before.lookup(user->getParentOfType<PhaseOp>());
      range.first = std::min(range.first, index);
      range.last = std::max(range.last, index);
    }
    // A probe is read after the step.
    if (alloc.getProbe())
      range.last = barriers + 1;
    ranges[alloc] = range;
  }
  return ranges;
}

/// First fit, largest first: returns the workspace size in bytes.
int64_t assignOffsets(ProgramOp program) {
  auto ranges = computeLiveRanges(program);
  SmallVector<AllocOp> order;
  for (auto &[alloc, range] : ranges)
    order.push_back(alloc);
  llvm::stable_sort(order, [](AllocOp a, AllocOp b) {
    return a.getBuffer().getType().getByteSize() >
           b.getBuffer().getType().getByteSize();
  });
  // Counters come first and share with nothing.
  int64_t begin = kBarrierBytes;
  for (CountersOp counters : program.getBody().getOps<CountersOp>()) {
    counters.setOffset(begin);
    begin = llvm::alignTo(begin + int64_t(counters.getCount()) * kCounterStride,
                          kAlignment);
  }
  int64_t total = begin;
  SmallVector<AllocOp> placed;
  for (AllocOp alloc : order) {
    int64_t size = alloc.getBuffer().getType().getByteSize();
    int64_t offset = begin;
    for (bool moved = true; moved;) {
      moved = false;
      for (AllocOp other : placed) {
        int64_t otherOffset = *other.getOffset();
        int64_t otherEnd =
            otherOffset + other.getBuffer().getType().getByteSize();
        if (ranges[other].overlaps(ranges[alloc]) && offset < otherEnd &&
            otherOffset < offset + size) {
          offset = llvm::alignTo(otherEnd, kAlignment);
          moved = true;
        }
      }
    }
    alloc.setOffset(offset);
    placed.push_back(alloc);
    total = std::max(total, offset + size);
  }
  return llvm::alignTo(total, kAlignment);
}

//===----------------------------------------------------------------------===//
// Weights
//===----------------------------------------------------------------------===//

/// Lays weights out and records where each lies.
class WeightLayout {
public:
  explicit WeightLayout(ModuleOp module)
      : symbols(module), builder(module.getContext()) {}

  /// Visits the weights of `op` in the order in which its stage reads them.
  void visit(Operation *op) {
    TypeSwitch<Operation *>(op)
        .Case([&](ExpertGateUpOp gateUp) {
          SmallVector<FlatSymbolRefAttr> sources = {gateUp.getGateAttr(),
                                                    gateUp.getUpAttr()};
          if (gateUp.getSharedGateAttr())
            llvm::append_values(sources, gateUp.getSharedGateAttr(),
                                gateUp.getSharedUpAttr());
          addQuant("mma_m16k128_pair", sources);
        })
        .Case([&](ExpertDownOp down) {
          SmallVector<FlatSymbolRefAttr> sources = {down.getDownAttr()};
          if (down.getSharedDownAttr())
            sources.push_back(down.getSharedDownAttr());
          addQuant("mma_m16k128", sources);
        })
        .Default([&](Operation *other) {
          for (StringRef attr : {"weight", "bias"})
            if (auto name = other->getAttrOfType<FlatSymbolRefAttr>(attr))
              add(name);
        });
  }

  ArrayAttr getRegions() { return builder.getArrayAttr(regions); }
  int64_t getBytes() const { return bytes; }

private:
  void add(FlatSymbolRefAttr name) {
    Type type = weightType(name);
    if (isa<QuantType>(type))
      return addQuant("mma_m16k128", {name});
    auto tensor = cast<RankedTensorType>(type);
    addRegion("raw", {name},
              tensor.getNumElements() * tensor.getElementTypeBitWidth() / 8);
  }

  void addQuant(StringRef layout, ArrayRef<FlatSymbolRefAttr> sources) {
    bool pair = layout.ends_with("_pair");
    int64_t size = 0;
    for (size_t i = 0; i < sources.size(); i += pair ? 2 : 1) {
      auto quant = cast<QuantType>(weightType(sources[i]));
      int64_t rows = pair ? kUnitOutputs / 2 : kUnitOutputs;
      int64_t units = quant.getStack() *
                      llvm::divideCeil(quant.getOutFeatures(), rows) *
                      llvm::divideCeil(quant.getInFeatures(), kUnitInputs);
      int64_t sets = kUnitInputs / std::min(quant.getGroup(), kUnitInputs);
      size += units * (kUnitInputs * kUnitOutputs / 2 + 64 * sets);
    }
    addRegion(layout, sources, size);
  }

  void addRegion(StringRef layout, ArrayRef<FlatSymbolRefAttr> sources,
                 int64_t size) {
    if (!seen.insert(sources.front().getAttr()).second)
      return;
    SmallVector<Attribute> names;
    for (FlatSymbolRefAttr source : sources)
      names.push_back(source.getAttr());
    // A stage's regions follow each other without a gap when their sizes
    // permit, so that one run of units covers several weights.
    bytes = llvm::alignTo(bytes, layout == "raw" ? kAlignment : 16);
    regions.push_back(builder.getDictionaryAttr(
        {builder.getNamedAttr("layout", builder.getStringAttr(layout)),
         builder.getNamedAttr("offset", builder.getI64IntegerAttr(bytes)),
         builder.getNamedAttr("bytes", builder.getI64IntegerAttr(size)),
         builder.getNamedAttr("sources", builder.getArrayAttr(names))}));
    bytes += size;
  }

  Type weightType(FlatSymbolRefAttr name) {
    return symbols.lookup<WeightOp>(name.getValue()).getType();
  }

  SymbolTable symbols;
  Builder builder;
  SmallVector<Attribute> regions;
  llvm::DenseSet<StringAttr> seen;
  int64_t bytes = 0;
};

struct PlanMemoryPass : public mega::impl::PlanMemoryPassBase<PlanMemoryPass> {
  using Base::Base;

  void runOnOperation() override {
    ModuleOp module = getOperation();
    auto target = module->getAttrOfType<TargetAttr>(kTargetAttrName);
    for (ProgramOp program :
         llvm::make_early_inc_range(module.getOps<ProgramOp>())) {
      int64_t workspace = assignOffsets(program);
      WeightLayout weights(module);
      // Runs of units first: raw tensors between them would break the runs.
      program.walk([&](Operation *op) {
        if (isa<AnchorOpInterface>(op) && !isRawLinear(op))
          weights.visit(op);
      });
      program.walk([&](Operation *op) { weights.visit(op); });

      OpBuilder builder(program);
      auto kernel = KernelOp::create(
          builder, program.getLoc(), program.getSymName(), target, workspace,
          llvm::alignTo(weights.getBytes(), kAlignment), weights.getRegions());
      if (Attribute chain = program->getAttr(kBarrierChainAttrName))
        kernel->setAttr(kBarrierChainAttrName, chain);
      kernel.getBody().takeBody(program.getBody());
      program.erase();
    }
  }

private:
  static bool isRawLinear(Operation *op) {
    auto linear = dyn_cast<LinearOp>(op);
    if (!linear)
      return false;
    auto weight = SymbolTable::lookupNearestSymbolFrom<WeightOp>(
        op, linear.getWeightAttr());
    return !isa<QuantType>(weight.getType());
  }
};

} // namespace
