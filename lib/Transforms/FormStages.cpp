// SPDX-License-Identifier: Apache-2.0
/// \file
/// Level 0 to 1. `StagePlan` decides, reading the block only; `ProgramBuilder`
/// writes the program that the plan describes.
///
/// Every op of the block is one of three things:
///   * an anchor, whose tiles a stage distributes;
///   * an epilogue op: it needs only what the owner of one anchor's tile has;
///   * a prologue op: every CTA of a stage that needs it computes it.

#include "mega/Transforms/Passes.h"

#include "mlir/IR/Builders.h"
#include "mlir/IR/IRMapping.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/Support/MathExtras.h"

namespace mega {
#define GEN_PASS_DEF_FORMSTAGESPASS
#include "mega/Transforms/Passes.h.inc"
} // namespace mega

using namespace mlir;
using namespace mega;

namespace {

/// Share of CTA time in which `tiles` equal tiles keep `ctas` CTAs busy.
double waveEfficiency(int64_t tiles, int64_t ctas) {
  return double(tiles) / double(llvm::divideCeil(tiles, ctas) * ctas);
}

/// True if computing `value` again would update state twice.
bool updatesState(Value value) {
  Operation *op = value.getDefiningOp();
  return op && !isa<AnchorOpInterface>(op) &&
         (isa<ShortConvOp>(op) ||
          llvm::any_of(op->getOperands(), updatesState));
}

bool writesState(Operation *op) { return isa<ShortConvOp, CacheAppendOp>(op); }

/// True if each element of the op's result depends on elements that one tile
/// of a column-tiled anchor holds.
bool isTileLocal(Operation *op) {
  // A rotation reads its pair's other half, which the tile computes again.
  if (auto rope = dyn_cast<RopeOp>(op))
    return rope.getKind() == RopeKind::None ||
           (!updatesState(rope.getX()) &&
            rope.getKind() == RopeKind::Interleaved &&
            rope.getOffset() % 2 == 0 &&
            cast<RankedTensorType>(rope.getType()).getShape().back() % 2 == 0);
  if (auto slice = dyn_cast<SliceOp>(op))
    return cast<RankedTensorType>(slice.getType()).getRank() == 1 &&
           slice.getOffset() % 2 == 0;
  return isa<MapOp, ShortConvOp, ReshapeOp, CacheAppendOp>(op);
}

/// Operands that carry data; the position is known everywhere.
SmallVector<Value> dataOperands(Operation *op) {
  SmallVector<Value> operands;
  for (Value operand : op->getOperands())
    if (isa<RankedTensorType>(operand.getType()))
      operands.push_back(operand);
  return operands;
}

//===----------------------------------------------------------------------===//
// StagePlan
//===----------------------------------------------------------------------===//

/// One stage to be.
struct PlannedStage {
  SmallVector<Operation *> anchors;
  SmallVector<Operation *> epilogue; ///< in program order
  int64_t level = 0;                 ///< longest chain of stages before it
};

class StagePlan {
public:
  StagePlan(BlockOp block, TargetAttr target, const StageOptions &options)
      : block(block), target(target), options(options) {
    insertElementwiseAnchors();
    collectAnchors();
    chooseSplits();
    fuseEpilogues();
    computeLevels();
    choosePublishers();
  }

  ArrayRef<PlannedStage> getStages() const { return stages; }
  bool isSplit(Operation *anchor) const { return splits.contains(anchor); }

  /// The stage whose tiles produce `value`; -1 for a prologue value.
  int64_t producerOf(Value value) const {
    Operation *op = value.getDefiningOp();
    auto it = op ? stageOf.find(op) : stageOf.end();
    return it == stageOf.end() ? -1 : it->second;
  }

  /// The stage that publishes prologue op `op`; -1 if none does.
  int64_t publisherOf(Operation *op) const {
    auto it = publishers.find(op);
    return it == publishers.end() ? -1 : it->second;
  }

private:
  /// The anchor that a chain of tile-local ops starts from, null if several or
  /// none.
  Operation *anchorOf(Value value) const {
    Operation *op = value.getDefiningOp();
    if (!op)
      return nullptr;
    if (isa<AnchorOpInterface>(op))
      return op;
    return isTileLocal(op) ? commonAnchor(op) : nullptr;
  }

  /// The anchor that all operands of `op` start from, if its tiles can carry
  /// `op`.
  Operation *commonAnchor(Operation *op) const {
    Operation *anchor = nullptr;
    for (Value operand : dataOperands(op)) {
      Operation *candidate = anchorOf(operand);
      if (!candidate || (anchor && candidate != anchor))
        return nullptr;
      anchor = candidate;
    }
    return anchor && takesEpilogue(anchor, op) ? anchor : nullptr;
  }

  /// True if the owner of a tile of `anchor` can go on with `op`.
  static bool takesEpilogue(Operation *anchor, Operation *op) {
    // A rotation needs tiles that hold adjacent pairs: a tile of a plain
    // weight is one row.
    if (auto rope = dyn_cast<RopeOp>(op);
        rope && rope.getKind() != RopeKind::None)
      return isa<ElementwiseOp>(anchor) ||
             (isa<LinearOp>(anchor) &&
              cast<AnchorOpInterface>(anchor).canSplit());
    if (writesState(op))
      return isa<LinearOp, ElementwiseOp>(anchor);
    // Tiles that are consecutive outputs.
    return isa<LinearOp, ElementwiseOp, DeltaRuleOp, ExpertDownOp>(anchor);
  }

  /// State updates and the result need an owner for each element: where no
  /// anchor owns them, distribute the elements themselves.
  void insertElementwiseAnchors() {
    SmallVector<OpOperand *> orphans;
    block.walk([&](Operation *op) {
      bool sink = writesState(op) || isa<ReturnOp>(op);
      if (!sink)
        return;
      OpOperand &operand = op->getOpOperand(0);
      Operation *anchor = anchorOf(operand.get());
      bool owned = anchor && takesEpilogue(anchor, op) &&
                   !(isa<ReturnOp>(op) && wouldSplit(anchor));
      if (!owned)
        orphans.push_back(&operand);
    });
    for (OpOperand *operand : orphans) {
      OpBuilder builder(operand->getOwner());
      Value value = operand->get();
      operand->set(ElementwiseOp::create(builder, operand->getOwner()->getLoc(),
                                         value.getType(), value, TilingAttr()));
    }
  }

  /// Scales a packed unit of the linear's weight holds for each column; 0 for a
  /// plain weight.
  static int64_t scalesOfUnit(LinearOp linear) {
    auto weight = SymbolTable::lookupNearestSymbolFrom<WeightOp>(
        linear, linear.getWeightAttr());
    auto quant = dyn_cast<QuantType>(weight.getType());
    return quant ? kUnitInputs / std::min(quant.getGroup(), kUnitInputs) : 0;
  }

  /// True if one walk over units can serve both: a stage's tensor-core tiles
  /// are one list of units of one format.
  static bool shareUnits(LinearOp a, LinearOp b) {
    int64_t inA = scalesOfUnit(a), inB = scalesOfUnit(b);
    return inA == inB || inA == 0 || inB == 0;
  }

  void collectAnchors() {
    // Linears of one operand read the same activations: one stage.
    DenseMap<Value, SmallVector<int64_t>> linearStages;
    for (Operation &op : block.getBody().front()) {
      if (!isa<AnchorOpInterface>(op))
        continue;
      int64_t index = stages.size();
      if (auto linear = dyn_cast<LinearOp>(op)) {
        SmallVector<int64_t> &candidates = linearStages[linear.getX()];
        auto it = llvm::find_if(candidates, [&](int64_t candidate) {
          return options.joinLinears &&
                 llvm::all_of(stages[candidate].anchors, [&](Operation *other) {
                   return shareUnits(linear, cast<LinearOp>(other));
                 });
        });
        if (it == candidates.end()) {
          candidates.push_back(index);
          stages.emplace_back();
        } else {
          index = *it;
        }
      } else {
        stages.emplace_back();
      }
      stages[index].anchors.push_back(&op);
      stageOf[&op] = index;
    }
    // Tensor-core tiles and rows of plain weights are two runs of one list.
    for (PlannedStage &stage : stages)
      llvm::stable_sort(stage.anchors, [](Operation *a, Operation *b) {
        return cast<AnchorOpInterface>(a).canSplit() >
               cast<AnchorOpInterface>(b).canSplit();
      });
  }

  /// True if some op downstream can only run where an element is complete.
  bool needsComplete(Value value) const {
    for (Operation *user : value.getUsers()) {
      if (isa<RopeOp>(user) || writesState(user))
        return true;
      if (isTileLocal(user) && commonAnchor(user) &&
          llvm::any_of(user->getResults(),
                       [&](Value result) { return needsComplete(result); }))
        return true;
    }
    return false;
  }

  bool wouldSplit(Operation *op) const {
    auto anchor = cast<AnchorOpInterface>(op);
    if (!anchor.canSplit())
      return false;
    // Its tiles are slices of the reduction axis by construction.
    if (isa<LatentValueOp>(op))
      return true;
    return !needsComplete(op->getResult(0)) &&
           waveEfficiency(anchor.getTileCount(), target.getCtas()) <
               options.splitBelow;
  }

  /// A stage splits as a whole, so that its CTAs walk one list.
  void chooseSplits() {
    for (PlannedStage &stage : stages) {
      int64_t tiles = 0;
      bool all = true;
      for (Operation *anchor : stage.anchors) {
        if (!cast<AnchorOpInterface>(anchor).canSplit())
          continue;
        tiles += cast<AnchorOpInterface>(anchor).getTileCount();
        all &= wouldSplit(anchor);
      }
      bool latent = isa<LatentValueOp>(stage.anchors.front());
      if (!all || tiles == 0 ||
          (!latent &&
           waveEfficiency(tiles, target.getCtas()) >= options.splitBelow))
        continue;
      for (Operation *anchor : stage.anchors)
        if (cast<AnchorOpInterface>(anchor).canSplit())
          splits.insert(anchor);
    }
  }

  void fuseEpilogues() {
    for (Operation &op : block.getBody().front()) {
      if (isa<AnchorOpInterface>(op) || !isTileLocal(&op))
        continue;
      Operation *anchor = commonAnchor(&op);
      if (!anchor || splits.contains(anchor))
        continue;
      bool operandsFused = llvm::all_of(dataOperands(&op), [&](Value operand) {
        return producerOf(operand) == stageOf.lookup(anchor);
      });
      if (!operandsFused)
        continue;
      int64_t index = stageOf.lookup(anchor);
      stages[index].epilogue.push_back(&op);
      stageOf[&op] = index;
    }
  }

  /// Prologue ops that a stage needs, and the stages it reads from.
  struct Needs {
    llvm::SetVector<Operation *> prologue;
    llvm::SetVector<int64_t> producers;
  };

  void collectNeeds(Value value, int64_t stage, Needs &needs) const {
    int64_t producer = producerOf(value);
    if (producer == stage || !isa<RankedTensorType>(value.getType()))
      return;
    if (producer >= 0) {
      needs.producers.insert(producer);
      return;
    }
    Operation *op = value.getDefiningOp();
    if (!op || !needs.prologue.insert(op))
      return;
    for (Value operand : op->getOperands())
      collectNeeds(operand, stage, needs);
  }

  Needs needsOf(int64_t index) const {
    Needs needs;
    for (ArrayRef<Operation *> ops :
         {ArrayRef(stages[index].anchors), ArrayRef(stages[index].epilogue)})
      for (Operation *op : ops)
        for (Value operand : op->getOperands())
          collectNeeds(operand, index, needs);
    return needs;
  }

  /// States that an op of the block reads or writes.
  static SmallVector<std::pair<StringAttr, bool>> stateUses(Operation *op) {
    if (auto conv = dyn_cast<ShortConvOp>(op))
      return {{conv.getStateAttr().getAttr(), true}};
    if (auto delta = dyn_cast<DeltaRuleOp>(op))
      return {{delta.getStateAttr().getAttr(), true}};
    if (auto append = dyn_cast<CacheAppendOp>(op))
      return {{append.getStateAttr().getAttr(), true}};
    if (auto scores = dyn_cast<LatentScoresOp>(op))
      return {{scores.getLatentAttr().getAttr(), false},
              {scores.getRopeAttr().getAttr(), false}};
    return {};
  }

  void computeLevels() {
    // Edges through state follow program order.
    SmallVector<llvm::SetVector<int64_t>> after(stages.size());
    llvm::MapVector<StringAttr, SmallVector<std::pair<int64_t, bool>>> touched;
    for (Operation &op : block.getBody().front())
      for (auto [state, writes] : stateUses(&op)) {
        int64_t index = stageOf.lookup(&op);
        for (auto [other, otherWrites] : touched[state])
          if (other != index && (writes || otherWrites))
            after[index].insert(other);
        touched[state].push_back({index, writes});
      }
    for (auto [index, stage] : llvm::enumerate(stages))
      for (int64_t producer : needsOf(index).producers)
        after[index].insert(producer);
    // Producers precede their readers in the block, but a stage takes its
    // place from its first anchor; iterate until nothing moves.
    for (bool changed = true; changed;) {
      changed = false;
      for (auto [index, stage] : llvm::enumerate(stages))
        for (int64_t other : after[index])
          if (stage.level <= stages[other].level) {
            stage.level = stages[other].level + 1;
            changed = true;
          }
    }
  }

  void choosePublishers() {
    llvm::MapVector<Operation *, SmallVector<int64_t>> readers;
    for (auto [index, stage] : llvm::enumerate(stages))
      for (Operation *op : needsOf(index).prologue)
        readers[op].push_back(index);
    for (auto &[op, users] : readers) {
      // A position or a view costs nothing to take again.
      if (isa<PositionOp, ReshapeOp, SliceOp>(op))
        continue;
      auto byLevel = [&](int64_t a, int64_t b) {
        return std::pair(stages[a].level, a) < std::pair(stages[b].level, b);
      };
      int64_t first = *llvm::min_element(users, byLevel);
      auto router = dyn_cast<RouterOp>(op);
      bool reused = llvm::any_of(users, [&](int64_t user) {
        return stages[user].level > stages[first].level;
      });
      if ((reused && options.publishReused) ||
          (router && router.getProbeAttr()))
        publishers[op] = first;
    }
  }

  BlockOp block;
  TargetAttr target;
  StageOptions options;
  SmallVector<PlannedStage> stages;
  DenseMap<Operation *, int64_t> stageOf;
  DenseMap<Operation *, int64_t> publishers;
  llvm::DenseSet<Operation *> splits;
};

//===----------------------------------------------------------------------===//
// ProgramBuilder
//===----------------------------------------------------------------------===//

class ProgramBuilder {
public:
  ProgramBuilder(BlockOp block, const StagePlan &plan, TargetAttr target)
      : block(block), plan(plan), target(target), builder(block) {}

  void build() {
    auto vector = [&](Type type) {
      auto tensor = cast<RankedTensorType>(type);
      return BufferType::get(tensor.getContext(), tensor.getShape(),
                             tensor.getElementType());
    };
    auto program =
        ProgramOp::create(builder, block.getLoc(), block.getSymNameAttr());
    Block *body = builder.createBlock(&program.getBody(), {},
                                      {vector(block.getArgumentTypes().front()),
                                       vector(block.getResultTypes().front())},
                                      {block.getLoc(), block.getLoc()});
    buffers[block.getBody().getArgument(0)] = body->getArgument(0);
    outputBuffer = body->getArgument(1);
    output = cast<ReturnOp>(block.getBody().front().getTerminator())
                 .getResults()
                 .front();

    SmallVector<int64_t> order(plan.getStages().size());
    for (auto [index, slot] : llvm::enumerate(order))
      slot = index;
    llvm::stable_sort(order, [&](int64_t a, int64_t b) {
      return plan.getStages()[a].level < plan.getStages()[b].level;
    });
    for (int64_t index : order)
      collectReads(index);
    allocate(order);
    for (int64_t index : order)
      buildStage(index);
    block.erase();
  }

private:
  /// A stage's view of the block's values.
  struct Scope {
    int64_t stage;
    IRMapping mapping;
  };

  bool comesFromMemory(Value value, int64_t stage) const {
    if (isa<BlockArgument>(value))
      return true;
    int64_t producer = plan.producerOf(value);
    if (producer >= 0)
      return producer != stage;
    int64_t publisher = plan.publisherOf(value.getDefiningOp());
    return publisher >= 0 && publisher != stage &&
           plan.getStages()[publisher].level < plan.getStages()[stage].level;
  }

  /// Notes which values `stage` will load, so that producers store them.
  void collectReads(int64_t stage) {
    llvm::DenseSet<Value> seen;
    std::function<void(Value)> visit = [&](Value value) {
      if (!isa<RankedTensorType>(value.getType()) ||
          !seen.insert(value).second || plan.producerOf(value) == stage)
        return;
      if (comesFromMemory(value, stage)) {
        published.insert(value);
        return;
      }
      for (Value operand : value.getDefiningOp()->getOperands())
        visit(operand);
    };
    const PlannedStage &planned = plan.getStages()[stage];
    for (Operation *op :
         llvm::concat<Operation *const>(planned.anchors, planned.epilogue))
      for (Value operand : op->getOperands())
        visit(operand);
  }

  /// Slots a split anchor's partial sums need: as many as CTAs can share one
  /// tile when the list is cut into equal runs.
  int64_t slotsOf(Operation *anchor) const {
    if (auto value = dyn_cast<LatentValueOp>(anchor))
      return llvm::divideCeil(
          cast<RankedTensorType>(value.getContext().getType()).getDimSize(2),
          kUnitInputs);
    int64_t tiles = 0;
    for (Operation *other :
         plan.getStages()[plan.producerOf(anchor->getResult(0))].anchors)
      if (plan.isSplit(other))
        tiles += cast<AnchorOpInterface>(other).getTileCount();
    return std::min<int64_t>(
        llvm::divideCeil(target.getCtas(), tiles) + 1,
        cast<AnchorOpInterface>(anchor).getReductionSteps());
  }

  bool isSplitResult(Value value) const {
    Operation *op = value.getDefiningOp();
    return op && plan.isSplit(op);
  }

  /// One buffer a published value, in the order in which stages produce them.
  void allocate(ArrayRef<int64_t> order) {
    for (int64_t index : order)
      for (Value value : valuesOf(index)) {
        auto router = value.getDefiningOp<RouterOp>();
        bool probed =
            router && router.getProbeAttr() && value == router.getIds();
        if (value == output) {
          buffers[value] = outputBuffer;
          continue;
        }
        if (!published.contains(value) && !probed)
          continue;
        auto tensor = cast<RankedTensorType>(value.getType());
        SmallVector<int64_t> shape(tensor.getShape());
        Type element = tensor.getElementType();
        if (isSplitResult(value)) {
          shape.insert(shape.begin(), slotsOf(value.getDefiningOp()));
          element = builder.getF32Type();
        }
        std::string name = nameOf(value);
        buffers[value] = AllocOp::create(
            builder, value.getLoc(),
            BufferType::get(builder.getContext(), shape, element),
            builder.getStringAttr(name),
            probed ? router.getProbeAttr() : StringAttr(), IntegerAttr());
      }
  }

  /// Values that the stage computes and may publish: its prologue ops that it
  /// publishes, then its anchors' and epilogues' results.
  SmallVector<Value> valuesOf(int64_t index) {
    SmallVector<Value> values;
    for (Operation &op : block.getBody().front()) {
      bool ours = op.getNumResults() != 0 &&
                  (plan.producerOf(op.getResult(0)) == index ||
                   plan.publisherOf(&op) == index);
      if (ours)
        llvm::append_range(values, op.getResults());
    }
    return values;
  }

  /// A name a person can follow: what made the value, and for which weight.
  std::string nameOf(Value value) {
    Operation *op = value.getDefiningOp();
    std::string base = (op->getName().stripDialect()).str();
    for (StringRef attr : {"weight", "state", "gate", "down", "latent"})
      if (auto symbol = op->getAttrOfType<FlatSymbolRefAttr>(attr)) {
        base = (symbol.getValue() + "." + base).str();
        break;
      }
    if (auto number = cast<OpResult>(value).getResultNumber())
      base += "." + std::to_string(number);
    unsigned &count = nameCounts[base];
    if (count++ != 0)
      base += "#" + std::to_string(count - 1);
    return base;
  }

  std::string stageName(const PlannedStage &stage) {
    Operation *first = stage.anchors.front();
    std::string name = first->getName().stripDialect().str();
    for (StringRef attr : {"weight", "state", "gate", "down", "latent"})
      if (auto symbol = first->getAttrOfType<FlatSymbolRefAttr>(attr)) {
        name += " " + symbol.getValue().str();
        break;
      }
    if (stage.anchors.size() > 1)
      name += " +" + std::to_string(stage.anchors.size() - 1);
    unsigned &count = nameCounts["stage " + name];
    if (count++ != 0)
      name += " #" + std::to_string(count - 1);
    return name;
  }

  void buildStage(int64_t index) {
    OpBuilder::InsertionGuard guard(builder);
    const PlannedStage &planned = plan.getStages()[index];
    auto stage = StageOp::create(builder, planned.anchors.front()->getLoc(),
                                 builder.getStringAttr(stageName(planned)),
                                 /*tiles=*/IntegerAttr());
    builder.createBlock(&stage.getBody());
    Scope scope{index, {}};
    for (Operation *op :
         llvm::concat<Operation *const>(planned.anchors, planned.epilogue))
      for (Value operand : op->getOperands())
        materialise(operand, scope);
    for (Operation *op :
         llvm::concat<Operation *const>(planned.anchors, planned.epilogue)) {
      Operation *clone = builder.clone(*op, scope.mapping);
      if (plan.isSplit(op)) {
        auto tensor = cast<RankedTensorType>(op->getResult(0).getType());
        clone->getResult(0).setType(tensor.clone(builder.getF32Type()));
        auto anchor = cast<AnchorOpInterface>(clone);
        anchor.setTilingAttr(
            TilingAttr::get(builder.getContext(), 0, anchor.getTileCount(),
                            anchor.getTileExtent(), /*split=*/true));
      }
    }
    for (Value value : valuesOf(index))
      store(value, scope);
  }

  /// Makes `value` available in the stage: from memory, or computed here.
  void materialise(Value value, Scope &scope) {
    if (scope.mapping.contains(value) || plan.producerOf(value) == scope.stage)
      return;
    if (isa<RankedTensorType>(value.getType()) &&
        comesFromMemory(value, scope.stage)) {
      Value buffer = buffers.lookup(value);
      Value loaded;
      if (isSplitResult(value))
        loaded = LoadSumOp::create(builder, value.getLoc(), value.getType(),
                                   buffer, AccessAttr());
      else
        loaded = LoadOp::create(builder, value.getLoc(), value.getType(),
                                buffer, AccessAttr());
      scope.mapping.map(value, loaded);
      return;
    }
    Operation *op = value.getDefiningOp();
    for (Value operand : op->getOperands())
      materialise(operand, scope);
    builder.clone(*op, scope.mapping);
  }

  void store(Value value, Scope &scope) {
    Value buffer = buffers.lookup(value);
    if (!buffer)
      return;
    StoreOp::create(builder, value.getLoc(), scope.mapping.lookup(value),
                    buffer, AccessAttr());
  }

  BlockOp block;
  const StagePlan &plan;
  TargetAttr target;
  OpBuilder builder;
  Value output;       ///< the block's result
  Value outputBuffer; ///< the caller's vector for it
  llvm::DenseSet<Value> published;
  DenseMap<Value, Value> buffers;
  llvm::StringMap<unsigned> nameCounts;
};

struct FormStagesPass : public mega::impl::FormStagesPassBase<FormStagesPass> {
  using Base::Base;

  void runOnOperation() override {
    ModuleOp module = getOperation();
    auto target = module->getAttrOfType<TargetAttr>(kTargetAttrName);
    for (BlockOp block : llvm::make_early_inc_range(module.getOps<BlockOp>())) {
      StagePlan plan(block, target, {splitBelow, joinLinears, publishReused});
      ProgramBuilder(block, plan, target).build();
    }
  }
};

} // namespace
