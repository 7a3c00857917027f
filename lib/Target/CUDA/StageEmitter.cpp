// SPDX-License-Identifier: Apache-2.0
/// \file
/// A stage: names and memory, what is shared between its readers, and the order
/// of its parts.

#include "StageEmitter.h"

#include "llvm/ADT/TypeSwitch.h"
#include <limits>

using namespace mlir;
using namespace mega;

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

bool mega::normalisesPieces(RmsNormOp op) {
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
