// SPDX-License-Identifier: Apache-2.0
/// \file
/// Prologues: what each CTA computes for itself before its tiles.

#include "StageEmitter.h"
#include "Names.h"
#include "ScalarRegion.h"

#include "mega/Analysis/Rope.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/TypeSwitch.h"

#include "llvm/ADT/bit.h"
#include <limits>

using namespace mlir;
using namespace mega;

static RankedTensorType typeOf(Value value) {
  return cast<RankedTensorType>(value.getType());
}

static std::string str(int64_t value) { return std::to_string(value); }

/// Elements of a piece: 16 bytes of bf16.
constexpr int64_t kPieceElements = 8;

static bool isAnchored(Value value) {
  Operation *op = value.getDefiningOp();
  if (!op)
    return false;
  return isa<AnchorOpInterface>(op) ||
         llvm::any_of(op->getOperands(), isAnchored);
}

//===----------------------------------------------------------------------===//
// Names and memory
//===----------------------------------------------------------------------===//

std::string StageEmitter::fresh(StringRef stem) {
  return (stem + llvm::Twine(nextName++)).str();
}

int64_t StageEmitter::reserve(int64_t bytes) {
  int64_t offset = llvm::alignTo(sharedBytes, 16);
  sharedBytes = offset + bytes;
  return offset;
}

std::string StageEmitter::declareScratch(const std::string &type,
                                         int64_t bytes) {
  std::string name = fresh("scratch");
  os << "  using " << name << "_t = " << type << ";\n"
     << "  static_assert(sizeof(" << name << "_t) == " << bytes
     << ", \"shared-memory plan\");\n"
     << "  auto &" << name << " = *reinterpret_cast<" << name
     << "_t *>(shared + " << reserve(bytes) << ");\n";
  return name;
}

/// C type that holds `element` in memory.
static StringRef storageType(Type element) {
  return element.isBF16() ? "mega::u16" : element.isF32() ? "float" : "int";
}

std::string StageEmitter::pointerTo(Value buffer) {
  std::string &name = pointers[buffer];
  if (!name.empty())
    return name;
  Type element = cast<BufferType>(buffer.getType()).getElementType();
  StringRef type = storageType(element);
  if (auto argument = dyn_cast<BlockArgument>(buffer)) {
    bool input = argument.getArgNumber() == 0;
    name = input ? "input" : "output";
    os << "  auto *const " << name << " = reinterpret_cast<"
       << (input ? "const " : "") << type << " *>(p." << name << ");\n";
    return name;
  }
  auto alloc = buffer.getDefiningOp<AllocOp>();
  name = fresh("buffer");
  os << "  auto *const " << name << " = reinterpret_cast<" << type << " *>("
     << arguments.add(alloc.getName(), PhaseArguments::From::Workspace,
                      *alloc.getOffset())
     << ");\n";
  return name;
}

std::string StageEmitter::statePointer(StringRef state) {
  std::string &name = statePointers[state];
  if (!name.empty())
    return name;
  name = fresh("state");
  os << "  auto *const " << name << " = reinterpret_cast<"
     << storageType(model.stateType(state).getElementType()) << " *>("
     << stateAddress(state) << ");\n";
  return name;
}

std::string StageEmitter::weightAddress(StringRef weight) {
  return arguments.add(weight, PhaseArguments::From::Weights,
                       model.rawOffset(weight));
}

std::string StageEmitter::stateAddress(StringRef state) {
  return arguments.add(state, PhaseArguments::From::State,
                       model.stateIndex(state));
}

std::string StageEmitter::rounded(Value value, const std::string &expression) {
  return typeOf(value).getElementType().isBF16()
             ? "mega::roundBf16(" + expression + ")"
             : expression;
}

std::string StageEmitter::at(Value value, const std::string &index) {
  return values[value].at(index);
}

//===----------------------------------------------------------------------===//
// Sharing
//===----------------------------------------------------------------------===//

/// True if one pass over pieces normalises the row.
static bool normalisesPieces(RmsNormOp op) {
  RankedTensorType type = typeOf(op.getResult());
  int64_t row = type.getShape().back();
  return type.getNumElements() == row && row % kPieceElements == 0;
}

/// Readers that take a vector as the B operand of tensor cores, or twice.
static bool readsActivation(Operation *user, Value value) {
  if (auto norm = dyn_cast<RmsNormOp>(user))
    return !normalisesPieces(norm);
  if (isa<LinearOp>(user))
    return true;
  if (auto gateUp = dyn_cast<ExpertGateUpOp>(user))
    return value == gateUp.getX();
  if (auto down = dyn_cast<ExpertDownOp>(user))
    return value == down.getHidden();
  return false;
}

/// Readers that index a few small values again and again.
static bool readsArray(Operation *user, Value value) {
  if (auto gateUp = dyn_cast<ExpertGateUpOp>(user))
    return value == gateUp.getIds();
  if (auto down = dyn_cast<ExpertDownOp>(user))
    return value == down.getIds() || value == down.getWeights();
  return false;
}

/// True if the stage also chooses experts, and reads `value` only in what it
/// does with their weights.
static bool waitsForRouter(Value value) {
  StageOp stage = value.getDefiningOp()->getParentOfType<StageOp>();
  return !stage.getBody().getOps<RouterOp>().empty() && value.hasOneUse() &&
         isa<ExpertGateUpOp>(*value.getUsers().begin());
}

PrologueValue &StageEmitter::declareActivation(Value value) {
  RankedTensorType type = typeOf(value);
  int64_t row = type.getShape().back();
  int64_t padded = llvm::alignTo(row, kUnitInputs);
  PrologueValue &home = values[value];
  home.levels = type.getElementType().isBF16() ? 1 : 3;
  home.length = type.getNumElements() / row * padded;
  home.shared = fresh("x");
  std::string name = home.shared;
  home.shifted = false;
  auto place = [=](const std::string &i) {
    return row == padded ? i
                         : "(" + i + ") / " + str(row) + " * " + str(padded) +
                               " + (" + i + ") % " + str(row);
  };
  home.at = [=](const std::string &i) {
    return name + ".get(" + place(i) + ")";
  };
  home.piece = {};
  if (row % kPieceElements == 0)
    home.piece.use = [=](const std::string &i, const std::string &,
                         const std::string &v, StringRef indent) {
      return (indent + name + ".get8(" + place(i) + ", " + v + ");\n").str();
    };
  os << "  const mega::Activation<" << home.levels << ", " << home.length
     << "> " << name << "{reinterpret_cast<mega::u16 *>(shared + "
     << reserve(home.levels * home.length * 2) << ")};\n";
  return home;
}

std::string StageEmitter::takeReady() { return std::exchange(frame.ready, {}); }

void StageEmitter::getReady() {
  std::string ready = takeReady();
  if (!ready.empty())
    os << "  " << ready << "\n";
}

void StageEmitter::sync() {
  for (const std::string &store : lateStores)
    os << store;
  if (pendingSync || !lateStores.empty())
    os << "  __syncthreads();\n";
  lateStores.clear();
  pendingSync = false;
}

bool StageEmitter::takesPieces(Value value) {
  const PrologueValue &known = values[value];
  return known.piece && !(known.shifted && pendingSync);
}

void StageEmitter::shareAsActivation(Value value) {
  if (!values[value].shared.empty())
    return;
  RankedTensorType type = typeOf(value);
  int64_t row = type.getShape().back();
  int64_t padded = llvm::alignTo(row, kUnitInputs);
  if (row % kPieceElements == 0 && takesPieces(value))
    return sharePieces(value);
  sync();
  getReady();
  ElementExpr expression = values[value].at;
  PrologueValue &home = declareActivation(value);
  home.shifted = true; // written element by element, not piece by piece
  os << "#pragma unroll\n  for (int i = threadIdx.x; i < " << home.length
     << "; i += " << model.threads() << ")\n    " << home.shared << ".set(i, ";
  if (row == padded)
    os << expression("i");
  else if (type.getNumElements() == row)
    os << "i < " << row << " ? " << expression("i") << " : 0.0f";
  else
    os << "i % " << padded << " < " << row << " ? "
       << expression("(i / " + str(padded) + " * " + str(row) + " + i % " +
                     str(padded) + ")")
       << " : 0.0f";
  os << ");\n";
  pendingSync = true;
}

void StageEmitter::sharePieces(Value value) {
  RankedTensorType type = typeOf(value);
  int64_t row = type.getShape().back();
  int64_t padded = llvm::alignTo(row, kUnitInputs);
  getReady();
  PieceRecipe piece = values[value].piece;
  PrologueValue &home = declareActivation(value);
  std::string source = "i", exists;
  if (row != padded) {
    source = "(i / " + str(padded) + " * " + str(row) + " + i % " +
             str(padded) + ")";
    exists = "i % " + str(padded) + " < " + str(row);
  }
  // Everything is asked for before anything is used, a few pieces at a time.
  constexpr int64_t kBatch = 4;
  int64_t pieces = home.length / kPieceElements, threads = model.threads();
  for (int64_t first = 0; first < pieces; first += kBatch * threads) {
    int64_t count =
        std::min<int64_t>(kBatch, llvm::divideCeil(pieces - first, threads));
    std::string array = fresh("v");
    auto forEach = [&](int64_t k, const std::string &statements,
                       const std::string &guard) {
      std::string condition = guard;
      if (first + (k + 1) * threads > pieces)
        condition =
            "i < " + str(home.length) + (guard.empty() ? "" : " && " + guard);
      std::string text = "  {\n    const int i = (int(threadIdx.x) + " +
                         str(first + k * threads) + ") * " +
                         str(kPieceElements) + ";\n";
      text += condition.empty()
                  ? statements
                  : "    if (" + condition + ") {\n" + statements + "    }\n";
      return text + "  }\n";
    };
    if (!piece.fields.empty())
      os << "  struct {" << piece.fields << " } " << array << "[" << count
         << "] = {};\n";
    if (piece.load)
      for (int64_t k = 0; k < count; ++k)
        os << forEach(k, piece.load(source, array + "[" + str(k) + "]", "    "),
                      exists);
    bool lastBatch = first + kBatch * threads >= pieces;
    // Which units to ask for may itself be on its way to shared memory.
    if (lastBatch && streamedFor == value && !lateStores.empty())
      sync();
    if (lastBatch)
      if (std::string asked = askBehind(value); !asked.empty())
        os << " " << asked << "\n";
    // What waits for a router's choice leaves it the time of the loads.
    bool late = lastBatch && count <= 2 && waitsForRouter(value);
    std::string stores;
    for (int64_t k = 0; k < count; ++k) {
      std::string raw = array + "[" + str(k) + "]", text;
      if (!piece.packed.empty()) {
        text = "    " + home.shared + ".set8(i, " + raw + "." + piece.packed +
               ");\n";
      } else {
        text = "    float v[" + str(kPieceElements) + "] = {};\n";
        text += exists.empty()
                    ? piece.use(source, raw, "v", "    ")
                    : "    if (" + exists + ") {\n" +
                          piece.use(source, raw, "v", "      ") + "    }\n";
        text += "    " + home.shared + ".set8(i, v);\n";
      }
      stores += forEach(k, text, "");
    }
    if (late)
      lateStores.push_back(stores);
    else
      os << stores;
  }
  pendingSync = true;
}

void StageEmitter::shareAsArray(Value value) {
  if (!values[value].shared.empty())
    return;
  getReady();
  ElementExpr expression = values[value].at;
  int64_t count = typeOf(value).getNumElements(), threads = model.threads();
  StringRef type =
      typeOf(value).getElementType().isInteger(32) ? "int" : "float";
  std::string name = fresh("array");
  os << "  auto *const " << name << " = reinterpret_cast<" << type
     << " *>(shared + " << reserve(count * 4) << ");\n";
  if (count <= threads) {
    // One load a thread, kept until the others are on their way; each array has
    // its own warps, if there are enough.
    int64_t offset = arrays * llvm::alignTo(count, 32) % threads;
    std::string index = fresh("i"), element = fresh("e");
    os << "  const int " << index << " = (int(threadIdx.x) + "
       << threads - offset << ") % " << threads << ";\n  const " << type << " "
       << element << " = " << index << " < " << count << " ? "
       << expression(index) << " : 0;\n";
    lateStores.push_back("  if (" + index + " < " + str(count) + ")\n    " +
                         name + "[" + index + "] = " + element + ";\n");
    ++arrays;
  } else {
    os << "  for (int i = threadIdx.x; i < " << count << "; i += " << threads
       << ")\n    " << name << "[i] = " << expression("i") << ";\n";
    pendingSync = true;
  }
  values[value].shared = name;
  values[value].piece = {};
  values[value].at = [name](const std::string &i) {
    return name + "[" + i + "]";
  };
}

void StageEmitter::shareIfNeeded(Value value) {
  // The norm shares what it reads, in the pass in which it reads it.
  if (llvm::any_of(value.getUsers(), [&](Operation *user) {
        auto norm = dyn_cast<RmsNormOp>(user);
        return norm && normalisesPieces(norm) && takesPieces(value) &&
               typeOf(value).getShape().back() ==
                   typeOf(value).getNumElements();
      }))
    return;
  if (llvm::any_of(value.getUsers(), [&](Operation *user) {
        return readsActivation(user, value);
      }))
    return shareAsActivation(value);
  if (llvm::any_of(value.getUsers(),
                   [&](Operation *user) { return readsArray(user, value); }))
    return shareAsArray(value);
  // Computing twice costs more than keeping.
  bool costly = isa<LoadSumOp, MapOp, RopeOp>(value.getDefiningOp());
  bool several =
      std::distance(value.getUses().begin(), value.getUses().end()) > 1;
  if (costly && several)
    shareAsActivation(value);
}

//===----------------------------------------------------------------------===//
// Ops
//===----------------------------------------------------------------------===//

LogicalResult StageEmitter::checkShares(StageOp stage) const {
  // share() in share.cuh: below 2^20, and 32 bits for a product with the CTAs.
  int64_t limit =
      std::min<int64_t>((1 << 20) - 1, std::numeric_limits<uint32_t>::max() /
                                           (model.getTarget().getCtas() + 1));
  auto check = [&](Operation *op, int64_t total) -> LogicalResult {
    if (total <= limit)
      return success();
    return op->emitOpError("has ") << total << " parts to share out over "
                                   << model.getTarget().getCtas()
                                   << " CTAs, expected at most " << limit;
  };
  auto checkList = [&](Operation *op, const UnitList &list) {
    return check(op, list.split ? list.tiles * list.steps : list.tiles);
  };
  auto linears = KernelModel::quantLinears(stage);
  if (!linears.empty() &&
      failed(checkList(linears.front(), linearList(linears))))
    return failure();
  for (Operation &op : stage.getBody().front()) {
    LogicalResult result = success();
    if (isa<ExpertGateUpOp, ExpertDownOp>(op))
      result = checkList(&op, expertList(&op));
    else if (auto anchor = dyn_cast<AnchorOpInterface>(op))
      result = check(&op, anchor.getTilingAttr().getCount());
    else if (auto store = dyn_cast<StoreOp>(op);
             store && !isAnchored(store.getValue()) &&
             isa<RankedTensorType>(store.getValue().getType()))
      result = check(&op, typeOf(store.getValue()).getNumElements());
    if (failed(result))
      return failure();
  }
  return success();
}

LogicalResult StageEmitter::emit(StageOp stage) {
  if (failed(checkShares(stage)))
    return failure();
  // A stage that streams no packed weights may use the ring's slots.
  bool ringLent = !KernelModel::usesRing(stage);
  sharedBytes = ringLent ? model.ringBarrierBytes() : model.ringBytes();
  if (!frame.early)
    getReady();
  emitWholeWaits(stage);
  if (auto linears = KernelModel::quantLinears(stage); !linears.empty()) {
    emitLinearStream(linears);
    streamedFor = linears.front().getX();
  }
  for (LinearOp linear : stage.getBody().getOps<LinearOp>())
    if (linear.getTileExtent() != kUnitOutputs)
      emitDenseRows(linear);
  if (frame.early) {
    // Weights are immutable, and how a list is shared out is known.
    for (auto &[op, rows] : denseRows)
      os << "  " << std::exchange(rows.ask, {}) << "\n";
    if (!streamBegin.empty())
      os << "  " << std::exchange(streamBegin, {}) << "\n";
  }
  // Small arrays first: their loads are on their way while the large ones
  // start.
  auto isSmall = [](Operation &op) {
    return isa<LoadOp>(op) &&
           llvm::any_of(op.getResult(0).getUsers(), [&](Operation *user) {
             return readsArray(user, op.getResult(0));
           });
  };
  Operation *expert = nullptr;
  for (Operation &op : stage.getBody().front())
    if (isa<ExpertGateUpOp, ExpertDownOp>(op))
      expert = &op;
  for (bool small : {true, false})
    for (Operation &op : stage.getBody().front())
      if (!isa<AnchorOpInterface>(op) && isSmall(op) == small &&
          llvm::none_of(op.getOperands(), isAnchored)) {
        if (!small && stream.empty() && expert)
          emitExpertStream(expert);
        emitPrologueOp(&op);
      }
  if (stream.empty() && expert)
    emitExpertStream(expert);
  sync();
  emitTileWaits(stage);
  if (failed(emitAnchors(stage)))
    return failure();
  emitSignals(stage);
  if (ringLent)
    os << "  mega::fenceAsyncProxy();\n";
  os << frame.end;
  return success();
}

void StageEmitter::emitPrologueOp(Operation *op) {
  TypeSwitch<Operation *>(op)
      .Case([&](LoadOp load) { emitLoad(load); })
      .Case([&](LoadSumOp load) { emitLoadSum(load); })
      .Case([&](MapOp map) { emitMap(map); })
      .Case([&](RopeOp rope) { emitRope(rope); })
      .Case([&](RmsNormOp norm) { emitRmsNorm(norm); })
      .Case([&](RouterOp router) { emitRouter(router); })
      .Case<ReshapeOp, SliceOp>([&](Operation *view) { emitView(view); })
      .Case([&](StoreOp store) { emitPrologueStore(store); })
      .Case([&](PositionOp) {});
  for (Value result : op->getResults())
    if (isa<RankedTensorType>(result.getType()) && values.contains(result))
      shareIfNeeded(result);
}

void StageEmitter::emitLoad(LoadOp op) {
  std::string pointer = pointerTo(op.getBuffer());
  Type element = op.getBuffer().getType().getElementType();
  StringRef load = element.isBF16()  ? "mega::bf16ToFloat(mega::loadSharedBf16("
                   : element.isF32() ? "(mega::loadSharedFloat("
                                     : "(mega::loadSharedInt(";
  PrologueValue &value = values[op.getResult()];
  value.at = [=](const std::string &i) {
    return load.str() + pointer + " + " + i + "))";
  };
  std::string field = fresh("loaded");
  if (element.isBF16()) {
    value.piece.fields = " uint4 " + field + ";";
    value.piece.packed = field;
    value.piece.load = [=](const std::string &i, const std::string &raw,
                           StringRef indent) {
      return (indent + raw + "." + field + " = mega::loadShared16(" + pointer +
              " + " + i + ");\n")
          .str();
    };
    value.piece.use = [=](const std::string &, const std::string &raw,
                          const std::string &v, StringRef indent) {
      return (indent + "mega::unpack(" + raw + "." + field + ", " + v + ");\n")
          .str();
    };
  } else if (!element.isInteger()) {
    std::string count = str(kPieceElements);
    value.piece.fields = " float " + field + "[" + count + "];";
    value.piece.load = [=](const std::string &i, const std::string &raw,
                           StringRef indent) {
      return (indent + "mega::loadShared8(" + pointer + " + " + i + ", " + raw +
              "." + field + ");\n")
          .str();
    };
    value.piece.use = [=](const std::string &, const std::string &raw,
                          const std::string &v, StringRef indent) {
      return (indent + "for (int j = 0; j < " + count + "; ++j)\n" + indent +
              "  " + v + "[j] = " + raw + "." + field + "[j];\n")
          .str();
    };
  }
}

/// A loop that rounds the array `name`, if `value` is bf16.
static std::string roundPiece(Value value, const std::string &name,
                              StringRef indent) {
  if (!typeOf(value).getElementType().isBF16())
    return "";
  return (indent + "for (int j = 0; j < " + str(kPieceElements) + "; ++j)\n" +
          indent + "  " + name + "[j] = mega::roundBf16(" + name + "[j]);\n")
      .str();
}

void StageEmitter::emitLoadSum(LoadSumOp op) {
  std::string pointer = pointerTo(op.getBuffer());
  int64_t count = typeOf(op.getResult()).getNumElements();
  PartialSums sums = model.partialSums(op.getBuffer());
  Value result = op.getResult();
  std::string function =
      "mega::sumSlots<" + str(sums.slots) + ", " + str(count) + ">";
  auto full = [=](const std::string &i) {
    if (sums.tiles == 0)
      return str(sums.slots);
    return "mega::Contributors<" + str(sums.tiles) + ", " + str(sums.bursts) +
           ">::of(" + str(sums.firstTile) + " + (" + i + ") / " +
           str(kUnitOutputs) + ").count";
  };
  values[result].at = [=](const std::string &i) {
    return rounded(result,
                   function + "(" + pointer + ", " + full(i) + ", " + i + ")");
  };
  if (count % kPieceElements == 0) {
    std::string field = fresh("loaded");
    PieceRecipe &piece = values[result].piece;
    piece.fields = " mega::SlotPieces<" + str(sums.slots) + "> " + field + ";";
    piece.load = [=](const std::string &i, const std::string &raw,
                     StringRef indent) {
      return (indent + raw + "." + field + ".load<" + str(count) + ">(" +
              pointer + ", " + full(i) + ", " + i + ");\n")
          .str();
    };
    piece.use = [=](const std::string &, const std::string &raw,
                    const std::string &v, StringRef indent) {
      return (indent + raw + "." + field + ".add(" + v + ");\n").str() +
             roundPiece(result, v, indent);
    };
  }
}

void StageEmitter::emitMap(MapOp op) {
  std::string name = fresh("map");
  os << "  const auto " << name << " = " << emitScalarLambda(op.getBody(), "  ")
     << ";\n";
  SmallVector<PrologueValue> inputs;
  for (Value input : op.getInputs())
    inputs.push_back(values[input]);
  Value result = op.getResult();
  PrologueValue &value = values[result];
  value.at = [=](const std::string &i) {
    std::string call = name + "(";
    for (auto [index, input] : llvm::enumerate(inputs))
      call += (index ? ", " : "") + input.at(i);
    return rounded(result, call + ")");
  };
  value.shifted = llvm::any_of(
      inputs, [](const PrologueValue &input) { return input.shifted; });
  if (!llvm::all_of(
          inputs, [](const PrologueValue &input) { return bool(input.piece); }))
    return;
  for (const PrologueValue &input : inputs)
    if (!StringRef(value.piece.fields).contains(input.piece.fields))
      value.piece.fields += input.piece.fields;
  value.piece.load = [=](const std::string &i, const std::string &raw,
                         StringRef indent) {
    std::string text;
    for (const PrologueValue &input : inputs) {
      if (!input.piece.load)
        continue;
      std::string load = input.piece.load(i, raw, indent);
      if (!StringRef(text).contains(load))
        text += load;
    }
    return text;
  };
  value.piece.use = [=](const std::string &i, const std::string &raw,
                        const std::string &v, StringRef indent) {
    std::string text, call = name + "(";
    for (auto [index, input] : llvm::enumerate(inputs)) {
      std::string operand = name + "_" + str(index);
      text += (indent + "float " + operand + "[" + str(kPieceElements) + "];\n")
                  .str() +
              input.piece.use(i, raw, operand, indent);
      call += (index ? ", " : "") + operand + "[j]";
    }
    return text +
           (indent + "for (int j = 0; j < " + str(kPieceElements) + "; ++j)\n" +
            indent + "  " + v + "[j] = " + rounded(result, call + ")") + ";\n")
               .str();
  };
}

void StageEmitter::emitRope(RopeOp op) {
  ElementExpr input = values[op.getX()].at;
  values[op.getResult()].at = [op, input](const std::string &i) mutable {
    return rounded(op.getResult(), ropeElement(op, input, i));
  };
}

void StageEmitter::emitView(Operation *op) {
  PrologueValue input = values[op->getOperand(0)];
  auto slice = dyn_cast<SliceOp>(op);
  PrologueValue &value = values[op->getResult(0)];
  value.at = input.at;
  value.piece = input.piece;
  value.shifted = input.shifted;
  if (!slice)
    return;
  int64_t from = typeOf(slice.getX()).getShape().back();
  int64_t to = typeOf(slice.getResult()).getShape().back();
  int64_t offset = slice.getOffset();
  auto place = [=](const std::string &i) {
    return "((" + i + ") / " + str(to) + " * " + str(from) + " + " +
           str(offset) + " + (" + i + ") % " + str(to) + ")";
  };
  value.at = [=](const std::string &i) { return input.at(place(i)); };
  value.piece = {};
  if (input.piece && from % kPieceElements == 0 && to % kPieceElements == 0 &&
      offset % kPieceElements == 0) {
    value.shifted = true;
    value.piece = input.piece;
    if (input.piece.load)
      value.piece.load = [=](const std::string &i, const std::string &raw,
                             StringRef indent) {
        return input.piece.load(place(i), raw, indent);
      };
    value.piece.use = [=](const std::string &i, const std::string &raw,
                          const std::string &v, StringRef indent) {
      return input.piece.use(place(i), raw, v, indent);
    };
  }
}

/// The factor of `column`: w, or 1 + w.
static std::string normFactor(const KernelModel &model, RmsNormOp op,
                              const std::string &weight,
                              const std::string &column) {
  bool wide = cast<RankedTensorType>(model.weightType(op.getWeight()))
                  .getElementType()
                  .isF32();
  std::string w =
      wide ? "mega::loadConstantFloat(" + weight + " + " + column + ")"
           : "mega::bf16ToFloat(mega::loadConstantBf16(" + weight + " + " +
                 column + "))";
  return op.getUnitOffset() ? "1.0f + " + w : w;
}

void StageEmitter::emitRmsNorm(RmsNormOp op) {
  RankedTensorType type = typeOf(op.getResult());
  int64_t row = type.getShape().back(), rows = type.getNumElements() / row;
  int64_t threads = model.threads();
  bool wide = cast<RankedTensorType>(model.weightType(op.getWeight()))
                  .getElementType()
                  .isF32();
  std::string factors = fresh("weight");
  os << "  auto *const " << factors << " = reinterpret_cast<const "
     << (wide ? "float" : "mega::u16") << " *>("
     << weightAddress(op.getWeight()) << ");\n";
  std::string eps = floatLiteral(op.getEps().convertToDouble());
  Value x = op.getX();
  if (normalisesPieces(op) && takesPieces(x)) {
    PieceRecipe piece = values[x].piece;
    // Each CTA has the pieces that it publishes in registers here; another
    // reader takes them from shared memory.
    std::string storeX = storePieces(x), storeOut = storePieces(op.getResult());
    std::string keep;
    if (values[x].shared.empty() &&
        llvm::any_of(x.getUsers(), [&](Operation *user) {
          return user != op && !stored.contains(user);
        }))
      keep = "        " + declareActivation(x).shared + ".set8(i, v);\n";
    PrologueValue &out = declareActivation(op.getResult());
    std::string raw = fresh("Raw");
    os << "  struct " << raw << " {" << piece.fields << " };\n"
       << "  mega::rmsNorm<" << raw << ", " << row << ", " << threads
       << ">(\n      " << out.shared << ", " << factors << ", "
       << (op.getUnitOffset() ? "1.0f" : "0.0f") << ", " << eps
       << ", reinterpret_cast<double *>(shared + " << reserve(threads / 32 * 8)
       << "),\n      [&] { " << takeReady() << " },\n      [&](int i, " << raw
       << " &raw) {\n"
       << (piece.load ? piece.load("i", "raw", "        ") : std::string())
       << "      },\n      [&](int i, const " << raw << " &raw, float (&v)["
       << kPieceElements << "]) {\n"
       << piece.use("i", "raw", "v", "        ") << keep << storeX
       << "      },\n      [&] {" << askBehind(op.getResult())
       << " },\n      [&](int i, const float (&v)[" << kPieceElements
       << "]) {\n"
       << (storeOut.empty() ? "        static_cast<void>(i);\n        "
                              "static_cast<void>(v);\n"
                            : storeOut)
       << "      });\n";
    pendingSync = true;
    return;
  }
  sync();
  getReady();
  ElementExpr input = values[x].at;
  PrologueValue &out = declareActivation(op.getResult());
  out.shifted = true; // written by other threads than take its pieces
  int64_t padded = out.length / rows;
  // A warp a row.
  os << "  for (int row = threadIdx.x / 32; row < " << rows
     << "; row += " << threads / 32 << ") {\n"
     << "    double sum = 0;\n"
     << "    for (int i = threadIdx.x % 32; i < " << row << "; i += 32) {\n"
     << "      const double v = " << input("(row * " + str(row) + " + i)")
     << ";\n      sum = fma(v, v, sum);\n    }\n"
     << "    const float scale = 1.0f / sqrtf(float(mega::warpSum(sum)) / "
     << row << ".0f + " << eps << ");\n"
     << "    for (int i = threadIdx.x % 32; i < " << padded
     << "; i += 32)\n      " << out.shared << ".set(row * " << padded
     << " + i, i < " << row << " ? (" << input("(row * " + str(row) + " + i)")
     << " * scale) * (" << normFactor(model, op, factors, "i")
     << ") : 0.0f);\n  }\n";
  pendingSync = true;
}

void StageEmitter::emitRouter(RouterOp op) {
  int64_t experts = typeOf(op.getLogits()).getNumElements();
  int64_t top = typeOf(op.getIds()).getNumElements();
  if (!isa_and_nonnull<LoadOp>(op.getLogits().getDefiningOp()))
    sync();
  std::string ids = fresh("ids"), weights = fresh("gates");
  std::string scratch = declareScratch("mega::RouterScratch<" + str(experts) +
                                           ", " + str(top) + ">",
                                       experts * 8);
  auto declareArray = [&](const std::string &name, StringRef type,
                          Value value) {
    os << "  auto *const " << name << " = reinterpret_cast<" << type
       << " *>(shared + " << reserve(top * 4) << ");\n";
    values[value].shared = name;
    values[value].at = [name](const std::string &i) {
      return name + "[" + i + "]";
    };
  };
  declareArray(ids, "int", op.getIds());
  declareArray(weights, "float", op.getWeights());
  std::string bias = "0.0f";
  if (op.getBias()) {
    bool wide = cast<RankedTensorType>(model.weightType(*op.getBias()))
                    .getElementType()
                    .isF32();
    std::string address = weightAddress(*op.getBias());
    bias = wide ? "mega::loadConstantFloat(reinterpret_cast<const float *>(" +
                      address + ") + e)"
                : "mega::bf16ToFloat(mega::loadConstantBf16(reinterpret_cast<"
                  "const mega::u16 *>(" +
                      address + ") + e))";
  }
  // Which weights to ask for is then known; what else the prologue does waits.
  std::string chosen;
  for (Operation *user : op.getIds().getUsers())
    if (isa<ExpertGateUpOp, ExpertDownOp>(user)) {
      emitExpertStream(user);
      if (!streamBegin.empty())
        os << "  " << std::exchange(streamBegin, {}) << "\n";
      chosen = " " + std::exchange(streamFill, {}) + " ";
      streamedFor = nullptr;
    }
  getReady();
  auto flag = [](bool value) { return value ? "true" : "false"; };
  os << "  mega::route<" << experts << ", " << top << ", " << model.threads()
     << ", " << flag(op.getScore() == ScoreKind::Sigmoid) << ", "
     << flag(op.getBias().has_value()) << ", "
     << flag(op.getRenormalize().has_value())
     << ">(\n        [&](int e) { return " << at(op.getLogits(), "e")
     << "; },\n        [&](int e) { return " << bias << "; }, "
     << floatLiteral(
            op.getRenormalize() ? op.getRenormalize()->convertToDouble() : 0.0)
     << ",\n        " << floatLiteral(op.getScale().convertToDouble()) << ", "
     << scratch << ", " << ids << ", " << weights << ", [&] {" << chosen
     << "});\n";
  pendingSync = true;
}

/// Statements that set `v` to elements [i, i + 8).
static std::string takePiece(const PieceRecipe &piece, StringRef indent) {
  std::string text;
  if (!piece.fields.empty())
    text += (indent + "struct {" + piece.fields + " } raw = {};\n").str();
  if (piece.load)
    text += piece.load("i", "raw", indent);
  return text + piece.use("i", "raw", "v", indent);
}

std::string StageEmitter::storePieces(Value value) {
  std::string text;
  for (Operation *user : value.getUsers()) {
    auto store = dyn_cast<StoreOp>(user);
    if (!store || !store.getBuffer().getType().getElementType().isBF16())
      continue;
    std::string own = ownOf(typeOf(value).getNumElements() / kPieceElements);
    text += "        if (i / " + str(kPieceElements) + " >= " + own +
            ".begin && i / " + str(kPieceElements) + " < " + own +
            ".end)\n          mega::store8(" + pointerTo(store.getBuffer()) +
            " + i, v);\n";
    stored.insert(store);
  }
  return text;
}

void StageEmitter::emitPrologueStore(StoreOp op) {
  if (stored.contains(op))
    return;
  getReady();
  std::string pointer = pointerTo(op.getBuffer());
  int64_t count = typeOf(op.getValue()).getNumElements();
  Type element = op.getBuffer().getType().getElementType();
  if (element.isBF16() && count % kPieceElements == 0 &&
      takesPieces(op.getValue())) {
    int64_t pieces = count / kPieceElements;
    os << "  {\n    const mega::Range own = " << ownOf(pieces) << ";\n"
       << "#pragma unroll 1\n"
       << "    for (int piece = threadIdx.x; piece < own.end; piece += "
       << model.threads() << ")\n      if (piece >= own.begin) {\n"
       << "        const int i = piece * " << kPieceElements << ";\n"
       << "        float v[" << kPieceElements << "];\n"
       << takePiece(values[op.getValue()].piece, "        ")
       << "        mega::store8(" << pointer << " + i, v);\n      }\n  }\n";
    return;
  }
  sync();
  std::string value = at(op.getValue(), "i");
  if (element.isBF16())
    value = "mega::floatToBf16(" + value + ")";
  // Every CTA holds the value; each writes its share.
  os << "  {\n    const mega::Range own = " << ownOf(count) << ";\n"
     << "#pragma unroll 1\n"
     << "    for (int i = own.begin + int(threadIdx.x); i < own.end; i += "
     << model.threads() << ")\n      " << pointer << "[i] = " << value
     << ";\n  }\n";
}

//===----------------------------------------------------------------------===//
// Rotary embedding
//===----------------------------------------------------------------------===//

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
