// SPDX-License-Identifier: Apache-2.0
/// \file
/// Prologues: what each CTA computes for itself before its tiles.

#include "Names.h"
#include "ScalarRegion.h"
#include "StageEmitter.h"

using namespace mlir;
using namespace mega;

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
