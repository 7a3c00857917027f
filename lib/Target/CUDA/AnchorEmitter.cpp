// SPDX-License-Identifier: Apache-2.0
/// \file
/// Anchors: the tiles that the grid shares out, and the epilogues that the
/// owner of a tile runs on it.

#include "ScalarRegion.h"
#include "StageEmitter.h"

#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace mega;

LogicalResult StageEmitter::emitAnchors(StageOp stage) {
  // A recurrence and attention have loads that may come first.
  auto anchors = stage.getBody().getOps<AnchorOpInterface>();
  bool attends =
      !anchors.empty() && llvm::all_of(anchors, [](AnchorOpInterface anchor) {
        return isa<LatentQueryOp, LatentScoresOp, LatentValueOp>(anchor);
      });
  if (stage.getBody().getOps<DeltaRuleOp>().empty() && !attends)
    getReady();
  // Plain weights first, while the stream's first copies are on their way.
  for (LinearOp linear : stage.getBody().getOps<LinearOp>())
    if (linear.getTileExtent() != kUnitOutputs)
      emitDenseLinear(linear);
  emitQuantLinears(KernelModel::quantLinears(stage));
  for (Operation &op : stage.getBody().front()) {
    if (!isa<AnchorOpInterface>(op))
      continue;
    LogicalResult result =
        TypeSwitch<Operation *, LogicalResult>(&op)
            .Case([&](LinearOp) { return success(); })
            .Case([&](DeltaRuleOp delta) {
              emitDeltaRule(delta);
              return success();
            })
            .Case([&](ExpertGateUpOp gateUp) {
              emitExpertGateUp(gateUp);
              return success();
            })
            .Case([&](ExpertDownOp down) {
              emitExpertDown(down);
              return success();
            })
            .Case([&](LatentQueryOp query) {
              emitLatentQuery(query);
              return success();
            })
            .Case(
                [&](LatentScoresOp scores) { return emitLatentScores(scores); })
            .Case([&](LatentValueOp value) {
              emitLatentValue(value);
              return success();
            })
            .Case([&](ElementwiseOp elementwise) {
              emitElementwise(elementwise);
              return success();
            })
            .Default([](Operation *other) {
              return other->emitOpError("has no emission, expected an anchor "
                                        "that the CUDA emitter knows");
            });
    if (failed(result))
      return failure();
  }
  return success();
}

//===----------------------------------------------------------------------===//
// Epilogues
//===----------------------------------------------------------------------===//

static std::string both(const std::string &a, const std::string &b) {
  return a.empty() ? b : b.empty() ? a : a + " && " + b;
}

void StageEmitter::emitEpilogue(Value result, TileValue base,
                                StringRef indent) {
  tileValues[result] = std::move(base);
  for (Operation &op :
       llvm::make_range(std::next(result.getDefiningOp()->getIterator()),
                        result.getDefiningOp()->getBlock()->end())) {
    bool ours = llvm::any_of(op.getOperands(), [&](Value operand) {
      return tileValues.contains(operand);
    });
    if (ours)
      emitTileOp(&op, indent);
  }
  tileValues.clear();
}

void StageEmitter::emitTileOp(Operation *op, StringRef indent) {
  auto declare = [&](Value value, TileValue tile, const std::string &text) {
    os << indent << "const float " << tile.name << " = " << rounded(value, text)
       << ";\n";
    tileValues[value] = std::move(tile);
  };
  TypeSwitch<Operation *>(op)
      .Case([&](ReshapeOp reshape) {
        TileValue tile = tileValues.lookup(reshape.getX());
        tileValues[reshape.getResult()] = tile;
      })
      .Case([&](SliceOp slice) {
        TileValue in = tileValues.lookup(slice.getX());
        int64_t offset = slice.getOffset();
        int64_t size = typeOf(slice.getResult()).getNumElements();
        TileValue tile = in;
        tile.index = fresh("i");
        os << indent << "const int " << tile.index << " = " << in.index << " - "
           << offset << ";\n";
        tile.guard = both(in.guard, tile.index + " >= 0 && " + tile.index +
                                        " < " + str(size));
        if (in.at)
          tile.at = [at = in.at, offset](const std::string &i) {
            return at("(" + i + ") + " + str(offset));
          };
        tileValues[slice.getResult()] = tile;
      })
      .Case([&](MapOp map) {
        std::string function = fresh("map");
        os << indent << "const auto " << function << " = "
           << emitScalarLambda(map.getBody(), indent) << ";\n";
        SmallVector<TileValue> inputs;
        for (Value input : map.getInputs())
          inputs.push_back(tileValues.lookup(input));
        TileValue tile = inputs.front();
        tile.name = fresh("v");
        bool pure = llvm::all_of(
            inputs, [](const TileValue &in) { return bool(in.at); });
        Value result = map.getResult();
        tile.at = nullptr;
        if (pure)
          tile.at = [=](const std::string &i) {
            std::string call = function + "(";
            for (auto [index, in] : llvm::enumerate(inputs))
              call += (index ? ", " : "") + in.at(i);
            return rounded(result, call + ")");
          };
        std::string call = function + "(";
        for (auto [index, in] : llvm::enumerate(inputs))
          call += (index ? ", " : "") + in.name;
        declare(result, tile, call + ")");
      })
      .Case([&](RopeOp rope) {
        TileValue in = tileValues.lookup(rope.getX());
        TileValue tile = in;
        tile.name = fresh("v");
        std::string rotated = ropeElement(rope, in.at, in.index);
        if (!in.guard.empty())
          rotated = in.guard + " ? " + rotated + " : 0.0f";
        tile.at = [rope, at = in.at](const std::string &i) mutable {
          return rounded(rope.getResult(), ropeElement(rope, at, i));
        };
        declare(rope.getResult(), tile, rotated);
      })
      .Case([&](ShortConvOp conv) {
        TileValue in = tileValues.lookup(conv.getX());
        TileValue tile = in;
        tile.name = fresh("v");
        tile.at = nullptr;
        RankedTensorType state = model.stateType(conv.getState());
        int64_t taps = state.getDimSize(0) + 1, channels = state.getDimSize(1);
        std::string window = convWindows.lookup(conv);
        if (window.empty()) {
          window = fresh("window");
          os << indent << "mega::ConvWindow<" << str(taps) << "> " << window
             << " = {};\n"
             << indent
             << (in.guard.empty() ? std::string() : "if (" + in.guard + ") ")
             << convLoad(conv, window, in.index) << "\n";
        }
        std::string call = window + ".apply<" + str(channels) +
                           ">(reinterpret_cast<mega::u16 *>(" +
                           stateAddress(conv.getState()) + "), " + in.index +
                           ", " + in.name + ")";
        if (!in.guard.empty())
          call = in.guard + " ? " + call + " : 0.0f";
        declare(conv.getResult(), tile, call);
      })
      .Case([&](CacheAppendOp append) {
        TileValue in = tileValues.lookup(append.getX());
        RankedTensorType state = model.stateType(append.getState());
        int64_t row = typeOf(append.getX()).getNumElements();
        bool narrow = state.getElementType().isBF16();
        os << indent
           << (in.guard.empty() ? std::string() : "if (" + in.guard + ") ")
           << "reinterpret_cast<" << (narrow ? "mega::u16" : "float") << " *>("
           << stateAddress(append.getState()) << ")[p.position * " << row
           << " + " << in.index << "] = "
           << (narrow ? "mega::floatToBf16(" + in.name + ")" : in.name)
           << ";\n";
      })
      .Case([&](StoreOp store) { emitTileStore(store, indent); });
}

void StageEmitter::emitTileStore(StoreOp op, StringRef indent) {
  TileValue in = tileValues.lookup(op.getValue());
  bool narrow = op.getBuffer().getType().getElementType().isBF16();
  os << indent << (in.guard.empty() ? std::string() : "if (" + in.guard + ") ")
     << pointers.lookup(op.getBuffer()) << "[" << in.index
     << "] = " << (narrow ? "mega::floatToBf16(" + in.name + ")" : in.name)
     << ";\n";
}

std::string StageEmitter::convLoad(ShortConvOp conv, const std::string &window,
                                   const std::string &channel) {
  RankedTensorType state = model.stateType(conv.getState());
  int64_t taps = state.getDimSize(0) + 1, channels = state.getDimSize(1);
  int64_t slice = int64_t(conv.getIndex().value_or(0)) * channels * taps * 2;
  return window + ".load<" + str(channels) +
         ">(reinterpret_cast<const mega::u16 *>(" +
         stateAddress(conv.getState()) +
         "), reinterpret_cast<const mega::u16 *>(" +
         weightAddress(conv.getWeight()) + " + " + str(slice) + "), " +
         channel + ");";
}

StoreOp StageEmitter::storeOf(Value value) const {
  for (Operation *user : value.getUsers())
    if (auto store = dyn_cast<StoreOp>(user))
      return store;
  return nullptr;
}

void StageEmitter::collectStores(Value value,
                                 SmallVectorImpl<StoreOp> &stores) {
  for (Operation *user : value.getUsers()) {
    if (auto store = dyn_cast<StoreOp>(user))
      stores.push_back(store);
    for (Value result : user->getResults())
      collectStores(result, stores);
  }
}

//===----------------------------------------------------------------------===//
// Elementwise
//===----------------------------------------------------------------------===//

void StageEmitter::emitElementwise(ElementwiseOp op) {
  SmallVector<StoreOp> stores;
  collectStores(op.getResult(), stores);
  for (StoreOp store : stores)
    pointerTo(store.getBuffer());
  os << "  {\n    const mega::Range own = "
     << ownOf(typeOf(op.getResult()).getNumElements()) << ";\n"
     << "    for (int i = own.begin + int(threadIdx.x); i < own.end; i += "
     << model.threads() << ") {\n";
  TileValue tile;
  tile.index = "i";
  tile.name = fresh("v");
  ElementExpr input = values[op.getX()].at;
  tile.at = input;
  os << "      const float " << tile.name << " = " << input("i") << ";\n";
  emitEpilogue(op.getResult(), tile, "      ");
  os << "    }\n  }\n";
}
