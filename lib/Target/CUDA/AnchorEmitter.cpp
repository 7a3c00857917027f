// SPDX-License-Identifier: Apache-2.0
/// \file
/// Anchors: the tiles that the grid shares out, and the epilogues that the
/// owner of a tile runs on it.

#include "Names.h"
#include "ScalarRegion.h"
#include "StageEmitter.h"

#include "mega/IR/LatentHeads.h"

#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace mega;

static RankedTensorType typeOf(Value value) {
  return cast<RankedTensorType>(value.getType());
}

static std::string str(int64_t value) { return std::to_string(value); }

/// The last component of a dotted name: layers differ in the others.
static StringRef shortName(StringRef name) {
  name.consume_back(".weight");
  StringRef last = name.rsplit('.').second;
  return last.empty() ? name : last;
}

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

/// Convolutions of the value itself, in whatever shape.
static void collectConvs(Value value, SmallVectorImpl<ShortConvOp> &convs) {
  for (Operation *user : value.getUsers())
    if (auto conv = dyn_cast<ShortConvOp>(user))
      convs.push_back(conv);
    else if (auto reshape = dyn_cast<ReshapeOp>(user))
      collectConvs(reshape.getResult(), convs);
}

std::string StageEmitter::emitAhead(ArrayRef<LinearOp> linears) {
  std::string fields, loads;
  int64_t begin = 0;
  for (LinearOp linear : linears) {
    int64_t end = begin + linear.getTileCount();
    int64_t outputs = typeOf(linear.getResult()).getNumElements();
    SmallVector<ShortConvOp> convs;
    if (!linear.getTilingAttr().getSplit())
      collectConvs(linear.getResult(), convs);
    for (auto [number, conv] : llvm::enumerate(convs)) {
      int64_t taps = model.stateType(conv.getState()).getDimSize(0) + 1;
      std::string field = "conv" + str(number) + "_" + str(taps);
      std::string declared =
          " mega::ConvWindow<" + str(taps) + "> " + field + ";";
      if (!StringRef(fields).contains(declared))
        fields += declared;
      convWindows[conv] = "ahead." + field;
      std::string i =
          "((tile - " + str(begin) + ") * " + str(kUnitOutputs) + " + row)";
      loads += "          if (tile >= " + str(begin) + " && tile < " +
               str(end) +
               (outputs % kUnitOutputs != 0 ? " && " + i + " < " + str(outputs)
                                            : std::string()) +
               ")\n            " + convLoad(conv, "ahead." + field, i) + "\n";
    }
    begin = end;
  }
  if (fields.empty())
    return "";
  os << "  struct Ahead {" << fields << " };\n";
  return loads;
}

StoreOp StageEmitter::storeOf(Value value) const {
  for (Operation *user : value.getUsers())
    if (auto store = dyn_cast<StoreOp>(user))
      return store;
  return nullptr;
}

/// Declares pointers for every buffer that an anchor's values go to, outside
/// the sink that uses them.
static void collectStores(Value value, SmallVectorImpl<StoreOp> &stores) {
  for (Operation *user : value.getUsers()) {
    if (auto store = dyn_cast<StoreOp>(user))
      stores.push_back(store);
    for (Value result : user->getResults())
      collectStores(result, stores);
  }
}

//===----------------------------------------------------------------------===//
// Quantised matrix-vector products
//===----------------------------------------------------------------------===//

std::string StageEmitter::declareGemvScratch(const UnitList &list) {
  // UnitStream and GemvScratch in quant_gemv.cuh.
  int64_t warps = model.threads() / 32;
  int64_t tiles = std::clamp<int64_t>(256 / list.bursts(), 1, warps);
  return declareScratch("decltype(" + stream + ")::Scratch",
                        (tiles * list.bursts() + warps) * 16 * 4);
}

std::string StageEmitter::runOf(const UnitList &list) {
  return list.split
             ? shares.add(list.tiles * list.bursts(), 1, ShareTable::Of::Bursts)
             : shares.add(list.tiles, list.bursts(), ShareTable::Of::Tiles);
}

UnitList StageEmitter::unitList(int64_t tiles, int64_t steps, int64_t segment,
                                int64_t sets, bool split) const {
  return {tiles, steps, segment, sets, split, model.burstUnits(segment)};
}

void StageEmitter::emitStream(const UnitList &list,
                              const std::string &address) {
  unit = unit.empty() ? "unit" : fresh("unit");
  stream = stream.empty() ? "stream" : fresh("stream");
  os << "  const auto " << unit
     << " = [&](int tile, int step) -> const mega::u8 * {\n"
     << address << "  };\n  mega::UnitStream<" << list.steps << ", "
     << list.segment << ", " << list.units << ", mega::Unit<" << list.sets
     << ">::kBytes, " << model.threads() << "> " << stream << ";\n";
  streamBegin = stream + ".begin(" + runOf(list) + ");";
  streamFill = stream + ".fill(ring, " + unit + ");";
}

void StageEmitter::emitGemv(const UnitList &list, bool scaled,
                            const PrologueValue &x, const std::string &scale,
                            const std::string &ahead) {
  std::string scratch = declareGemvScratch(list);
  for (std::string *statement : {&streamBegin, &streamFill})
    if (!statement->empty())
      os << "  " << std::exchange(*statement, {}) << "\n";
  os << "  mega::quantGemv<" << list.steps << ", "
     << (scaled ? list.segment : 0) << ", " << list.sets << ">(\n        "
     << stream << ", " << x.shared << ", " << scratch << ", ring, " << unit
     << ", [&](int row) { return " << scale << "; },\n        ";
  if (ahead.empty())
    os << "[](int, int) { return mega::Nothing(); },\n"
       << "        [&](int tile, int row, const float *sums, mega::Nothing) "
          "{\n";
  else
    os << "[&](int tile, int row) {\n          Ahead ahead = {};\n"
       << ahead << "          return ahead;\n        },\n"
       << "        [&](int tile, int row, const float *sums, const Ahead "
          "&ahead) "
          "{\n";
}

UnitList StageEmitter::linearList(SmallVector<LinearOp> linears) const {
  PackedWeight first = model.packed(linears.front().getWeight());
  int64_t tiles = 0;
  for (LinearOp linear : linears)
    tiles += linear.getTileCount();
  return unitList(tiles, first.steps(), first.steps(), first.sets,
                  linears.front().getTilingAttr().getSplit());
}

void StageEmitter::emitLinearStream(SmallVector<LinearOp> linears) {
  emitStream(linearList(linears), "    return " + unitAddress(linears) + ";\n");
}

void StageEmitter::emitPartialStore(Value result, StringRef tile,
                                    StringRef index, StringRef value,
                                    const PartialSums &sums, StringRef indent) {
  StoreOp store = storeOf(result);
  int64_t count = typeOf(result).getNumElements();
  os << indent << "const int slot = int(blockIdx.x) - mega::Contributors<"
     << sums.tiles << ", " << sums.bursts << ">::of(" << tile << ").first;\n"
     << indent;
  if (count % kUnitOutputs != 0)
    os << "if (" << index << " < " << count << ") ";
  os << pointers.lookup(store.getBuffer()) << "[slot * " << count << " + "
     << index << "] = " << value << ";\n";
}

std::string StageEmitter::unitAt(StringRef weight, const std::string &number) {
  std::string &base = unitBases[weight];
  if (base.empty()) {
    base = fresh("units");
    os << "  const mega::u8 *const " << base << " = " << weightAddress(weight)
       << ";\n";
  }
  // A multiplication of 32 bits to 64: 2^32 units are terabytes.
  return base + " + mega::u64(mega::u32(" + number + ")) * " +
         str(model.packed(weight).unitBytes());
}

std::string StageEmitter::unitAddress(SmallVector<LinearOp> linears) {
  PackedWeight first = model.packed(linears.front().getWeight());
  int64_t next = first.offset, tiles = 0;
  bool adjacent = true;
  for (LinearOp linear : linears) {
    PackedWeight weight = model.packed(linear.getWeight());
    adjacent &= weight.offset == next;
    next = weight.offset + weight.matrixBytes();
  }
  auto expression = [&](LinearOp linear, const std::string &tile) {
    PackedWeight weight = model.packed(linear.getWeight());
    return unitAt(linear.getWeight(),
                  tile + " * " + str(weight.steps()) + " + step");
  };
  if (adjacent)
    return expression(linears.front(), "tile");
  // Weights that another stage reads too lie elsewhere.
  std::string text;
  for (LinearOp linear : linears) {
    std::string tile = "(tile - " + str(tiles) + ")";
    tiles += model.packed(linear.getWeight()).tiles();
    if (linear != linears.back())
      text += "tile < " + str(tiles) + " ? ";
    text += expression(linear, tile);
    if (linear != linears.back())
      text += " : ";
  }
  return text;
}

void StageEmitter::emitQuantLinears(SmallVector<LinearOp> linears) {
  if (linears.empty())
    return;
  for (LinearOp linear : linears)
    weightBytes += model.packed(linear.getWeight()).matrixBytes();
  bool split = linears.front().getTilingAttr().getSplit();
  const PrologueValue x = values[linears.front().getX()];
  for (LinearOp linear : linears) {
    SmallVector<StoreOp> stores;
    collectStores(linear.getResult(), stores);
    for (StoreOp store : stores)
      pointerTo(store.getBuffer());
  }
  std::string loads = emitAhead(linears);
  emitGemv(linearList(linears), /*scaled=*/false, x, "1.0f", loads);
  int64_t begin = 0;
  for (auto [number, linear] : llvm::enumerate(linears)) {
    int64_t end = begin + linear.getTileCount();
    bool last = number + 1 == linears.size();
    os << (number ? "else " : "          ");
    if (!last)
      os << "if (tile < " << end << ") ";
    os << "{ // " << toComment(shortName(linear.getWeight())) << "\n";
    StringRef indent = "            ";
    std::string index = fresh("i"), base = fresh("first");
    os << indent << "const int " << base << " = (tile - " << begin << ") * "
       << kUnitOutputs << ", " << index << " = " << base << " + row;\n";
    Value result = linear.getResult();
    if (split) {
      emitPartialStore(result, "tile", index, "sums[row]",
                       model.partialSums(storeOf(result).getBuffer()), indent);
    } else {
      int64_t outputs = typeOf(result).getNumElements();
      TileValue tile;
      tile.index = index;
      tile.name = fresh("v");
      if (outputs % kUnitOutputs != 0)
        tile.guard = index + " < " + str(outputs);
      tile.at = [=](const std::string &i) {
        return rounded(result, "sums[(" + i + ") - " + base + "]");
      };
      os << indent << "const float " << tile.name << " = "
         << rounded(result, "sums[row]") << ";\n";
      emitEpilogue(result, tile, indent);
    }
    os << "          }" << (last ? "\n" : " ");
    begin = end;
  }
  os << "        });\n";
}

void StageEmitter::emitDenseRows(LinearOp op) {
  std::string name = fresh("rows");
  os << "  mega::DenseRows<" << typeOf(op.getX()).getNumElements() << ", "
     << model.threads() << "> " << name << ";\n";
  // The last CTAs have the shortest runs of units: give them rows first.
  std::string ask = name + ".ask(" +
                    ownOfReversed(typeOf(op.getResult()).getNumElements()) +
                    ", reinterpret_cast<const mega::u16 *>(" +
                    weightAddress(op.getWeight()) + "));";
  denseRows[op] = {name, ask};
}

std::string StageEmitter::askBehind(Value value) {
  std::string text;
  for (auto &[op, rows] : denseRows)
    if (cast<LinearOp>(op).getX() == value)
      text += " " + std::exchange(rows.ask, {});
  if (streamedFor == value && lateStores.empty()) {
    text += " " + std::exchange(streamBegin, {}) + " " +
            std::exchange(streamFill, {});
    streamedFor = nullptr;
  }
  return text;
}

void StageEmitter::emitDenseLinear(LinearOp op) {
  int64_t inputs = typeOf(op.getX()).getNumElements();
  int64_t outputs = typeOf(op.getResult()).getNumElements();
  weightBytes += inputs * outputs * 2;
  SmallVector<StoreOp> stores;
  collectStores(op.getResult(), stores);
  for (StoreOp store : stores)
    pointerTo(store.getBuffer());
  int64_t warps = model.threads() / 32;
  std::string scratch =
      declareScratch("mega::DenseScratch<" + str(warps) + ">", warps * 8);
  DenseRowsName &rows = denseRows[op];
  if (!rows.ask.empty())
    os << "  " << std::exchange(rows.ask, {}) << "\n";
  os << "  mega::denseGemv<" << inputs << ", " << model.threads() << ">("
     << rows.name << ", " << values[op.getX()].shared << ".planes, " << scratch
     << ", [&](int row, float sum) { // "
     << toComment(shortName(op.getWeight())) << "\n";
  Value result = op.getResult();
  TileValue tile;
  tile.index = "row";
  tile.name = fresh("v");
  os << "        const float " << tile.name << " = " << rounded(result, "sum")
     << ";\n";
  emitEpilogue(result, tile, "        ");
  os << "      });\n";
}

//===----------------------------------------------------------------------===//
// Experts
//===----------------------------------------------------------------------===//

/// "ids[row]" for routed rows, the shared expert's number after them.
static std::string expertOf(const std::string &ids, const std::string &row,
                            int64_t routed, int64_t stack, int64_t rows) {
  if (rows == routed)
    return ids + "[" + row + "]";
  return "(" + row + " < " + str(routed) + " ? " + ids + "[" + row +
         "] : " + str(stack - routed) + " + " + row + ")";
}

std::string StageEmitter::gateUpAddress(ExpertGateUpOp op, StringRef ids) {
  PackedWeight weight = model.packed(op.getGate());
  int64_t stack = cast<QuantType>(model.weightType(op.getGate())).getStack();
  int64_t routed = typeOf(op.getIds()).getNumElements();
  int64_t rows = typeOf(op.getResult()).getDimSize(0);
  return "          const int row = tile / " + str(weight.tiles()) +
         ", strip = tile % " + str(weight.tiles()) +
         ";\n          const int expert = " +
         expertOf(ids.str(), "row", routed, stack, rows) +
         ";\n          return " +
         unitAt(op.getGate(), "(expert * " + str(weight.tiles()) +
                                  " + strip) * " + str(weight.steps()) +
                                  " + step") +
         ";\n";
}

UnitList StageEmitter::expertList(Operation *op) const {
  if (auto gateUp = dyn_cast<ExpertGateUpOp>(op)) {
    PackedWeight weight = model.packed(gateUp.getGate());
    int64_t rows = typeOf(gateUp.getResult()).getDimSize(0);
    return unitList(rows * weight.tiles(), weight.steps(), weight.steps(),
                    weight.sets, /*split=*/false);
  }
  auto down = cast<ExpertDownOp>(op);
  PackedWeight weight = model.packed(down.getDown());
  int64_t rows = typeOf(down.getHidden()).getDimSize(0);
  return unitList(weight.tiles(), rows * weight.steps(), weight.steps(),
                  weight.sets, down.getTilingAttr().getSplit());
}

void StageEmitter::emitExpertStream(Operation *op) {
  if (auto gateUp = dyn_cast<ExpertGateUpOp>(op)) {
    if (values[gateUp.getIds()].shared.empty())
      return; // the router has not chosen yet
    emitStream(expertList(op),
               gateUpAddress(gateUp, values[gateUp.getIds()].shared));
    streamedFor = gateUp.getX();
    return;
  }
  auto down = cast<ExpertDownOp>(op);
  if (values[down.getIds()].shared.empty())
    return;
  emitStream(expertList(op), downAddress(down, values[down.getIds()].shared));
  streamedFor = down.getHidden();
}

void StageEmitter::emitExpertGateUp(ExpertGateUpOp op) {
  PackedWeight weight = model.packed(op.getGate());
  int64_t rows = typeOf(op.getResult()).getDimSize(0);
  int64_t columns = typeOf(op.getResult()).getDimSize(1);
  weightBytes += rows * weight.matrixBytes();
  const PrologueValue x = values[op.getX()];
  SmallVector<StoreOp> stores;
  collectStores(op.getResult(), stores);
  for (StoreOp store : stores)
    pointerTo(store.getBuffer());
  std::string activation = fresh("activation");
  os << "  const auto " << activation << " = "
     << emitScalarLambda(op.getActivation(), "  ") << ";\n";
  UnitList list = expertList(op);
  emitGemv(list, /*scaled=*/false, x, "1.0f");
  os << "          if (row >= " << weight.rowsPerTile() << ") return;\n"
     << "          const int column = tile % " << weight.tiles() << " * "
     << weight.rowsPerTile() << " + row;\n"
     << "          const int i = tile / " << weight.tiles() << " * " << columns
     << " + column;\n";
  TileValue tile;
  tile.index = "i";
  tile.name = fresh("v");
  if (columns % weight.rowsPerTile() != 0)
    tile.guard = "column < " + str(columns);
  os << "          const float " << tile.name << " = "
     << rounded(op.getResult(), activation + "(sums[row], sums[row + " +
                                    str(weight.rowsPerTile()) + "])")
     << ";\n";
  emitEpilogue(op.getResult(), tile, "          ");
  os << "        });\n";
}

std::string StageEmitter::downAddress(ExpertDownOp op, StringRef ids) {
  PackedWeight weight = model.packed(op.getDown());
  int64_t stack = cast<QuantType>(model.weightType(op.getDown())).getStack();
  int64_t routed = typeOf(op.getIds()).getNumElements();
  int64_t rows = typeOf(op.getHidden()).getDimSize(0);
  return "          const int row = step / " + str(weight.steps()) +
         ", inner = step % " + str(weight.steps()) +
         ";\n          const int expert = " +
         expertOf(ids.str(), "row", routed, stack, rows) +
         ";\n          return " +
         unitAt(op.getDown(), "(expert * " + str(weight.tiles()) +
                                  " + tile) * " + str(weight.steps()) +
                                  " + inner") +
         ";\n";
}

void StageEmitter::emitExpertDown(ExpertDownOp op) {
  PackedWeight weight = model.packed(op.getDown());
  int64_t routed = typeOf(op.getIds()).getNumElements();
  int64_t rows = typeOf(op.getHidden()).getDimSize(0);
  bool split = op.getTilingAttr().getSplit();
  weightBytes += rows * weight.matrixBytes();
  const PrologueValue x = values[op.getHidden()];
  std::string gates = values[op.getWeights()].shared;
  SmallVector<StoreOp> stores;
  collectStores(op.getResult(), stores);
  for (StoreOp store : stores)
    pointerTo(store.getBuffer());
  UnitList list = expertList(op);
  emitGemv(list, /*scaled=*/true, x,
           rows == routed
               ? gates + "[row]"
               : "row < " + str(routed) + " ? " + gates + "[row] : 1.0f");
  os << "          const int i = tile * " << kUnitOutputs << " + row;\n";
  Value result = op.getResult();
  if (split) {
    emitPartialStore(result, "tile", "i", "sums[row]",
                     model.partialSums(storeOf(result).getBuffer()),
                     "          ");
  } else {
    TileValue tile;
    tile.index = "i";
    tile.name = fresh("v");
    if (typeOf(result).getNumElements() % kUnitOutputs != 0)
      tile.guard = "i < " + str(typeOf(result).getNumElements());
    tile.at = [=](const std::string &i) {
      return rounded(result,
                     "sums[(" + i + ") - tile * " + str(kUnitOutputs) + "]");
    };
    os << "          const float " << tile.name << " = "
       << rounded(result, "sums[row]") << ";\n";
    emitEpilogue(result, tile, "          ");
  }
  os << "        });\n";
}

//===----------------------------------------------------------------------===//
// Recurrence
//===----------------------------------------------------------------------===//

std::string StageEmitter::readyAtFirst(const std::string &tiles,
                                       StringRef indent) {
  std::string ready = takeReady();
  if (ready.empty())
    return "[&] { }";
  // A CTA without a tile must not arrive twice without a wait in between.
  os << indent << "if (int(blockIdx.x) >= " << tiles << ") {\n"
     << indent << "  " << ready << "\n"
     << indent << "}\n";
  return "[&] { if (tile == int(blockIdx.x)) { " + ready + " } }";
}

void StageEmitter::emitDeltaRule(DeltaRuleOp op) {
  int64_t keys = typeOf(op.getK()).getDimSize(1);
  int64_t columns = typeOf(op.getV()).getDimSize(1);
  int64_t strip = op.getTileExtent(), strips = columns / strip;
  std::string state = statePointer(op.getState());
  std::string scratch =
      declareScratch("mega::DeltaScratch<" + str(model.threads()) + ", " +
                         str(keys) + ", " + str(strip) + ">",
                     llvm::alignTo(keys * 20 + 2 * model.threads() * 8, 8));
  SmallVector<StoreOp> stores;
  collectStores(op.getResult(), stores);
  for (StoreOp store : stores)
    pointerTo(store.getBuffer());
  std::string kind, decay = "1.0f";
  switch (op.getKind()) {
  case DecayKind::None:
    kind = "None";
    break;
  case DecayKind::Head:
    kind = "Head";
    decay = at(op.getDecay(), "head");
    break;
  case DecayKind::Channel:
    kind = "Channel";
    decay = at(op.getDecay(), "(head * " + str(keys) + " + i)");
    break;
  }
  auto key = [&](Value value) {
    return at(value, "(head * " + str(keys) + " + i)");
  };
  if (!model.isPrivate(op.getState(), op->getParentOfType<StageOp>()))
    getReady();
  std::string ready = readyAtFirst(str(op.getTileCount()));
  os << "  for (int tile = blockIdx.x; tile < " << op.getTileCount()
     << "; tile += gridDim.x) {\n    mega::atTile(tile);\n"
     << "    if (tile != int(blockIdx.x))\n"
     << "      __syncthreads(); // the last tile's sums were read\n"
     << "    const int head = tile / " << strips << ", first = tile % "
     << strips << " * " << strip << ";\n"
     << "    mega::deltaRule<" << model.threads() << ", " << keys << ", "
     << columns << ", " << strip << ", mega::Decay::" << kind << ">(\n"
     << "        " << state << " + head * " << keys * columns
     << " + first,\n        " << ready << ",\n        [&](int i) { return "
     << key(op.getQ()) << "; },\n        [&](int i) { return " << key(op.getK())
     << "; },\n        [&](int i) { return "
     << at(op.getV(), "(head * " + str(columns) + " + first + i)")
     << "; },\n        [&] { return " << at(op.getBeta(), "head")
     << "; }, [&](int i) { return " << decay << "; },\n        " << scratch
     << ", [&](int column, float sum) {\n"
     << "          const int i = head * " << columns << " + first + column;\n";
  TileValue tile;
  tile.index = "i";
  tile.name = fresh("v");
  os << "          const float " << tile.name << " = "
     << rounded(op.getResult(), "sum") << ";\n";
  emitEpilogue(op.getResult(), tile, "          ");
  os << "        });\n  }\n";
}

//===----------------------------------------------------------------------===//
// Latent attention
//===----------------------------------------------------------------------===//

void StageEmitter::emitLatentQuery(LatentQueryOp op) {
  PackedWeight weight = model.packed(op.getWeight());
  int64_t heads = typeOf(op.getResult()).getDimSize(0);
  int64_t latent = typeOf(op.getResult()).getDimSize(1);
  int64_t width = typeOf(op.getQ()).getDimSize(1);
  // A head's columns in the weight are its keys, then its values.
  int64_t perHead = weight.outputs / heads;
  int64_t keys = op.getKeys();
  weightBytes +=
      heads * keys / kUnitOutputs * weight.steps() * weight.unitBytes();
  std::string scratch =
      declareScratch("mega::LatentQueryScratch<" + str(model.threads()) + ">",
                     model.threads() / 64 * 128 * 4);
  std::string out = pointerTo(storeOf(op.getResult()).getBuffer());
  std::string ready = readyAtFirst(str(op.getTileCount()));
  os << "  for (int tile = blockIdx.x; tile < " << op.getTileCount()
     << "; tile += gridDim.x) {\n    mega::atTile(tile);\n"
        "    const int head = tile / "
     << weight.steps() << ", step = tile % " << weight.steps() << ";\n"
     << "    mega::latentQuery<" << model.threads() << ", " << keys << ", "
     << weight.sets << ">(\n        " << ready << ", [&](int i) { return "
     << at(op.getQ(), "(head * " + str(width) + " + i)") << "; }, " << scratch
     << ",\n        [&](int row) { return " << weightAddress(op.getWeight())
     << " + mega::u64((head * " << perHead / kUnitOutputs << " + row) * "
     << weight.steps() << " + step) * " << weight.unitBytes()
     << "; },\n        [&](int column, float sum) {\n"
     << "          const int channel = step * " << kUnitInputs
     << " + column;\n          if (channel < " << latent << ") " << out
     << "[head * " << latent << " + channel] = sum;\n        });\n  }\n";
}

LogicalResult StageEmitter::emitLatentScores(LatentScoresOp op) {
  int64_t heads = typeOf(op.getQ()).getDimSize(0);
  int64_t width = typeOf(op.getQ()).getDimSize(1);
  int64_t latent = typeOf(op.getAbsorbed()).getDimSize(1);
  int64_t rope = model.stateType(op.getRope()).getDimSize(1);
  if (latent % 8 != 0 || rope % 8 != 0)
    return op.emitOpError("reads cache rows of ")
           << latent << " and " << rope << " elements, expected multiples of 8";
  // Rows at a time, and passes whose scores are kept: what shared memory holds.
  int64_t padded = llvm::alignTo(latent + rope, 16);
  int64_t warps = model.threads() / 32;
  auto scratchBytes = [&](int64_t rows, int64_t partials) {
    int64_t scores =
        std::max(partials * warps * kLatentHeads * (rows + 8),
                 kLatentHeads * int64_t(llvm::alignTo(padded, 32) + 8));
    return 3 * rows * (padded + 8) * 2 + scores * 4 +
           3 * kLatentHeads * (rows + 8) * 2 + kLatentHeads * 4;
  };
  int64_t room = model.getTarget().getSharedBytes() - sharedBytes - 16;
  int64_t rows = 32, partials = 2;
  if (scratchBytes(rows, partials) > room)
    partials = 1;
  if (scratchBytes(rows, partials) > room)
    rows = 16;
  if (scratchBytes(rows, partials) > room)
    return op.emitOpError("needs ")
           << scratchBytes(rows, partials) << " bytes of shared memory for "
           << 3 * rows << " cache rows of " << latent + rope
           << " elements, expected at most the " << room
           << " that the target leaves";
  std::string state = statePointer(op.getLatent());
  std::string ropeState = statePointer(op.getRope());
  bool exact = typeOf(op.getQ()).getElementType().isBF16();
  std::string shape = "mega::LatentShape<" + str(model.threads()) + ", " +
                      str(latent) + ", " + str(rope) + ", " +
                      str(exact ? 1 : 3) + ", " + str(rows) + ", " +
                      str(partials) + ">";
  std::string scratch = declareScratch("mega::LatentScratch<" + shape + ">",
                                       scratchBytes(rows, partials));
  std::string maximum = pointerTo(storeOf(op.getMaximum()).getBuffer());
  std::string sum = pointerTo(storeOf(op.getSum()).getBuffer());
  std::string context = pointerTo(storeOf(op.getContext()).getBuffer());
  std::string most = str(typeOf(op.getMaximum()).getDimSize(1));
  std::string absorbed =
      pointerTo(op.getAbsorbed().getDefiningOp<LoadOp>().getBuffer());
  std::string own =
      heads % kLatentHeads == 0
          ? str(kLatentHeads)
          : "min(" + str(heads) + " - base, " + str(kLatentHeads) + ")";
  // Rows that an earlier phase has appended may be asked for at once.
  auto stage = op->getParentOfType<StageOp>();
  for (FlatSymbolRefAttr cache : {op.getLatentAttr(), op.getRopeAttr()})
    if (model.isTouchedJustBefore(cache.getValue(), stage))
      getReady();
  os << "  {\n    using Chunks = mega::LatentChunks<" << heads << ">;\n"
     << "    const int length = int(p.position) + 1;\n"
     << "    const int chunks = Chunks::count(length);\n";
  std::string ready = readyAtFirst("Chunks::kGroups * chunks", "    ");
  os << "    for (int tile = blockIdx.x; tile < Chunks::kGroups * chunks; tile "
        "+= gridDim.x) {\n"
     << "      mega::atTile(tile);\n"
     << "      const int chunk = tile / Chunks::kGroups;\n"
     << "      const int base = tile % Chunks::kGroups * " << kLatentHeads
     << ";\n      mega::latentScores<" << shape << ">(\n"
     << "          Chunks::rows(length, chunk, chunks), " << own << ", "
     << state << ", " << ropeState << ",\n          "
     << floatLiteral(op.getScale().convertToDouble()) << ", " << ready
     << ",\n          [&](int h) { return " << absorbed << " + (base + h) * "
     << latent << "; },\n          [&](int h, int c) { return "
     << at(op.getQ(),
           "((base + h) * " + str(width) + " + " + str(width - rope) + " + c)")
     << "; },\n          " << scratch
     << ", [&](int h, float top, float total) {\n            " << maximum
     << "[(base + h) * " << most << " + chunk] = top;\n            " << sum
     << "[(base + h) * " << most << " + chunk] = total;\n          },\n"
     << "          [&](int h, int c, float2 pair) {\n"
     << "            *reinterpret_cast<float2 *>(" << context << " + (chunk * "
     << heads << " + base + h) * " << latent
     << " + c) = pair;\n          });\n    }\n  }\n";
  return success();
}

void StageEmitter::emitLatentValue(LatentValueOp op) {
  PackedWeight weight = model.packed(op.getWeight());
  int64_t chunks = typeOf(op.getContext()).getDimSize(0);
  int64_t heads = typeOf(op.getContext()).getDimSize(1);
  int64_t latent = typeOf(op.getContext()).getDimSize(2);
  int64_t columns = typeOf(op.getResult()).getNumElements() / heads;
  int64_t perHead = weight.outputs / heads, keys = perHead - columns;
  weightBytes +=
      heads * columns / kUnitOutputs * weight.steps() * weight.unitBytes();
  std::string scratch =
      declareScratch("mega::LatentValueScratch<" + str(model.threads()) + ">",
                     model.threads() / 32 * 128 * 4 + 3 * 128 * 2);
  std::string out = pointerTo(storeOf(op.getResult()).getBuffer());
  std::string context =
      "mega::loadSharedFloat4(" +
      pointerTo(op.getContext().getDefiningOp<LoadOp>().getBuffer()) +
      " + ((i * " + str(heads) + " + head) * " + str(latent) + " + step * " +
      str(kUnitInputs) + " + c))";
  if (latent % kUnitInputs != 0)
    context = "step * " + str(kUnitInputs) + " + c < " + str(latent) + " ? " +
              context + " : float4{0, 0, 0, 0}";
  std::string perChunk = "(head * " + str(chunks) + " + i)";
  std::string ready = readyAtFirst(str(op.getTileCount()));
  os << "  for (int tile = blockIdx.x; tile < " << op.getTileCount()
     << "; tile += gridDim.x) {\n    mega::atTile(tile);\n"
        "    const int head = tile / "
     << weight.steps() << ", step = tile % " << weight.steps() << ";\n"
     << "    mega::latentValue<" << model.threads() << ", " << chunks << ", "
     << columns << ", " << weight.sets << ">(\n        mega::LatentChunks<"
     << heads << ">::count(int(p.position) + 1),\n        " << ready
     << ",\n        [&](int i) { return " << at(op.getMaximum(), perChunk)
     << "; },\n        [&](int i) { return " << at(op.getSum(), perChunk)
     << "; },\n        [&](int i, int c) { return " << context << "; }, "
     << scratch << ",\n        [&](int row) { return "
     << weightAddress(op.getWeight()) << " + mega::u64((head * "
     << perHead / kUnitOutputs << " + " << keys / kUnitOutputs << " + row) * "
     << weight.steps() << " + step) * " << weight.unitBytes()
     << "; },\n        [&](int column, float sum) { " << out << "[step * "
     << heads * columns << " + head * " << columns
     << " + column] = sum; });\n  }\n";
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
