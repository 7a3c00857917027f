// SPDX-License-Identifier: Apache-2.0
/// \file
/// Matrix-vector products of linears: packed weights through the ring, plain
/// ones row by row.

#include "Names.h"
#include "StageEmitter.h"

using namespace mlir;
using namespace mega;

/// The last component of a dotted name: layers differ in the others.
static StringRef shortName(StringRef name) {
  name.consume_back(".weight");
  StringRef last = name.rsplit('.').second;
  return last.empty() ? name : last;
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
