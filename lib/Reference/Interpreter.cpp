// SPDX-License-Identifier: Apache-2.0
/// \file
/// Binding a block to weights and state, and walking it once a step.

#include "mega/Reference/Interpreter.h"

#include "Machine.h"

#include "llvm/ADT/TypeSwitch.h"

#include <thread>

using namespace mlir;
using namespace mega;
using namespace mega::reference;

/// The interpreter's own data.
struct Interpreter::Impl {
  BlockOp block;
  Machine machine;
};

Interpreter::Interpreter(std::unique_ptr<Impl> impl) : impl(std::move(impl)) {}
Interpreter::~Interpreter() = default;

FailureOr<BlockOp> mega::reference::findBlock(ModuleOp module) {
  auto blocks = llvm::to_vector(module.getOps<BlockOp>());
  if (blocks.size() != 1)
    return module.emitError("module holds ")
           << blocks.size() << " mega.block ops, expected one";
  return blocks.front();
}

//===----------------------------------------------------------------------===//
// Creation
//===----------------------------------------------------------------------===//

/// Compiles an op's region, if it has one, and rejects ops without a meaning.
static LogicalResult prepare(Operation &op, Machine &machine) {
  auto compile = [&](Region &region) -> LogicalResult {
    FailureOr<ScalarProgram> program = ScalarProgram::compile(region);
    if (failed(program))
      return failure();
    machine.programs[&op] = std::move(*program);
    return success();
  };
  if (auto map = dyn_cast<MapOp>(op))
    return compile(map.getBody());
  if (auto experts = dyn_cast<ExpertsOp>(op))
    return compile(experts.getActivation());
  if (isa<ReshapeOp, SliceOp, RmsNormOp, LinearOp, ShortConvOp, DeltaRuleOp,
          RopeOp, CacheAppendOp, LatentAttentionOp, RouterOp, PositionOp,
          ReturnOp>(op))
    return success();
  return op.emitOpError("has no reference meaning, expected a level-0 op");
}

/// A state before any token: zeros, or a cache without rows.
static StateValue initialState(StateOp op) {
  TensorSpec spec = tensorOf(op, 0);
  std::vector<float> values(numElements(spec.shape));
  return {spec.type, spec.shape, std::move(values)};
}

FailureOr<std::unique_ptr<Interpreter>>
Interpreter::create(BlockOp block, const TensorViews &weights,
                    unsigned threads) {
  auto impl = std::make_unique<Impl>();
  impl->block = block;
  Machine &machine = impl->machine;
  machine.threads =
      threads ? threads : std::max(1u, std::thread::hardware_concurrency());
  Operation *table = SymbolTable::getNearestSymbolTable(block->getParentOp());
  for (Operation &op : table->getRegion(0).front()) {
    if (auto weight = dyn_cast<WeightOp>(op))
      if (failed(bindWeight(weight, weights, machine)))
        return failure();
    if (auto state = dyn_cast<StateOp>(op))
      machine.states[state.getSymName()] = initialState(state);
  }
  for (Operation &op : block.getBody().front())
    if (failed(prepare(op, machine)))
      return failure();
  return std::unique_ptr<Interpreter>(new Interpreter(std::move(impl)));
}

//===----------------------------------------------------------------------===//
// State
//===----------------------------------------------------------------------===//

LogicalResult Interpreter::setState(StringRef name, const TensorView &view) {
  auto op = SymbolTable::lookupNearestSymbolFrom<StateOp>(
      impl->block->getParentOp(),
      StringAttr::get(impl->block.getContext(), name));
  if (!op)
    return impl->block.emitOpError("is given state '")
           << name << "', which no mega.state declares";
  int64_t rows = view.shape.empty() ? 0 : view.shape[0];
  TensorSpec wanted = tensorOf(op, rows);
  if (view.type != wanted.type || view.shape != wanted.shape)
    return op.emitOpError("is given a value of type ")
           << typeText(view.shape, view.type) << ", expected "
           << (op.isCache() ? "a cache of rows as in " : "")
           << typeText(wanted.shape, wanted.type);
  StateValue value{view.type, view.shape, {}};
  value.values.resize(numElements(view.shape));
  widen(view, 0, value.values.size(), value.values.data());
  impl->machine.states[name] = std::move(value);
  return success();
}

void Interpreter::honourRelaxations(bool honour) {
  impl->machine.honourRelaxations = honour;
}

LogicalResult Interpreter::setPosition(int64_t position) {
  if (position < 0)
    return impl->block.emitOpError("is given position ")
           << position << ", expected a non-negative one";
  impl->machine.position = position;
  return success();
}

int64_t Interpreter::position() const { return impl->machine.position; }

const StateValue *Interpreter::state(StringRef name) const {
  auto it = impl->machine.states.find(name);
  return it == impl->machine.states.end() ? nullptr : &it->second;
}

ArrayRef<RouterProbe> Interpreter::probes() const {
  return impl->machine.probes;
}

BlockOp Interpreter::block() const { return impl->block; }

//===----------------------------------------------------------------------===//
// Steps
//===----------------------------------------------------------------------===//

/// Every cache holds one row per token seen.
static LogicalResult checkCaches(BlockOp block, const Machine &machine) {
  Operation *table = SymbolTable::getNearestSymbolTable(block->getParentOp());
  for (auto op : table->getRegion(0).getOps<StateOp>()) {
    int64_t rows = machine.states.find(op.getSymName())->second.shape[0];
    if (op.isCache() && rows != machine.position)
      return op.emitOpError("holds ")
             << rows << " rows before a step, expected the position "
             << machine.position;
  }
  return success();
}

/// Runs one op.
static LogicalResult run(Operation &op, Machine &machine) {
  return llvm::TypeSwitch<Operation *, LogicalResult>(&op)
      .Case<MapOp, ReshapeOp, SliceOp, RmsNormOp, LinearOp, ShortConvOp,
            DeltaRuleOp, RopeOp, CacheAppendOp, LatentAttentionOp, RouterOp,
            ExpertsOp>([&](auto op) { return evaluate(op, machine); })
      .Default([](Operation *) { return success(); });
}

FailureOr<std::vector<float>> Interpreter::step(ArrayRef<float> hidden) {
  BlockOp block = impl->block;
  Machine &machine = impl->machine;
  BlockArgument argument = block.getBody().getArgument(0);
  int64_t wanted = tensorTypeOf(argument).getNumElements();
  if (static_cast<int64_t>(hidden.size()) != wanted)
    return block.emitOpError("is given a hidden vector of ")
           << hidden.size() << " elements, expected " << wanted;
  if (failed(checkCaches(block, machine)))
    return failure();
  machine.clearValues();
  machine.set(argument, hidden.vec());
  for (Operation &op : block.getBody().front())
    if (failed(run(op, machine)))
      return failure();
  ++machine.position;
  auto result = cast<ReturnOp>(block.getBody().front().getTerminator());
  return machine.get(result.getResults()[0]).vec();
}
