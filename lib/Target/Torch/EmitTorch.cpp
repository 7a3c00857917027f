// SPDX-License-Identifier: Apache-2.0
/// \file
/// Writes the tables of a block's torch module. What the tables mean is in the
/// package (runtime/python/megalith/torch.py); nothing here knows torch but for
/// the names of its dtypes.

#include "mega/Target/Torch.h"

#include "mega/IR/Mega.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;
using namespace mega;

namespace mega::detail {
std::vector<std::pair<std::string_view, std::string_view>> pythonFiles();
} // namespace mega::detail

std::vector<std::pair<std::string_view, std::string_view>>
mega::pythonPackage() {
  return detail::pythonFiles();
}

/// A Python string literal. Newlines and quotes are escaped, so it may also
/// stand in a comment.
static std::string literal(StringRef text) {
  std::string result = "\"";
  for (char c : text) {
    if (c == '"' || c == '\\')
      result += '\\';
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) {
      result += "\\x";
      result += llvm::hexdigit((c >> 4) & 15, /*LowerCase=*/true);
      result += llvm::hexdigit(c & 15, /*LowerCase=*/true);
    } else {
      result += c;
    }
  }
  return result + '"';
}

/// A part of a state's name as a key: an index if it is a number as Python
/// writes it.
static std::string keyLiteral(StringRef part) {
  bool number = !part.empty() && part.size() <= 9 &&
                llvm::all_of(part, llvm::isDigit) &&
                (part == "0" || part.front() != '0');
  return number ? part.str() : literal(part);
}

/// Camel case of the letters and digits of a block's name.
static std::string classNameOf(StringRef block) {
  std::string name;
  bool upper = true;
  for (char c : block) {
    if (!llvm::isAlnum(c)) {
      upper = true;
      continue;
    }
    name += upper ? llvm::toUpper(c) : c;
    upper = false;
  }
  // Names that no class can have; the rest of Python's are in lower case.
  if (name.empty() || llvm::isDigit(name.front()) || name == "None" ||
      name == "True" || name == "False")
    return "Block" + name;
  return name;
}

static StringRef dtypeOf(Type type) {
  return type.isBF16() ? "torch.bfloat16" : "torch.float32";
}

/// A Python tuple; a dynamic dimension is -1.
static std::string shapeText(ArrayRef<int64_t> shape) {
  std::string text = "(";
  llvm::raw_string_ostream os(text);
  llvm::interleaveComma(shape, os, [&](int64_t dim) {
    os << (ShapedType::isDynamic(dim) ? -1 : dim);
  });
  os << (shape.size() == 1 ? ",)" : ")");
  return text;
}

/// The type of a vector or state, as comments give it.
static std::string typeText(RankedTensorType type) {
  std::string text = type.getElementType().isBF16() ? "bf16 [" : "f32 [";
  llvm::raw_string_ostream os(text);
  llvm::interleaveComma(type.getShape(), os, [&](int64_t dim) {
    if (ShapedType::isDynamic(dim))
      os << "rows";
    else
      os << dim;
  });
  os << "]";
  return text;
}

static void writeWeights(ModuleOp block, llvm::raw_ostream &os) {
  os << "# Name, dtype, shape, and whether it is a parameter (else a buffer).\n"
        "_WEIGHTS = tuple(runtime.Weight(*row) for row in (\n";
  auto row = [&](const Twine &name, StringRef dtype, ArrayRef<int64_t> shape,
                 bool parameter) {
    os << "    (" << literal(name.str()) << ", " << dtype << ", "
       << shapeText(shape) << ", " << (parameter ? "True" : "False") << "),\n";
  };
  for (WeightOp weight : block.getOps<WeightOp>()) {
    StringRef name = weight.getSymName();
    if (auto quant = dyn_cast<QuantType>(weight.getType())) {
      SmallVector<int64_t> codes(quant.getShape()), groups(quant.getShape());
      codes[codes.size() - 2] /= 2;
      groups[groups.size() - 2] /= quant.getGroup();
      row(name + ".w_q", "torch.uint8", codes, false);
      row(name + ".scales", "torch.bfloat16", groups, false);
      row(name + ".zeros", "torch.bfloat16", groups, false);
    } else {
      auto tensor = cast<RankedTensorType>(weight.getType());
      row(name, dtypeOf(tensor.getElementType()), tensor.getShape(), true);
    }
  }
  os << "))\n";
}

/// The keys that lead to a state, as literals.
static SmallVector<std::string> pathOf(StateOp state) {
  SmallVector<StringRef> parts;
  state.getSymName().split(parts, '.');
  return llvm::map_to_vector(parts, keyLiteral);
}

static void writeStates(ModuleOp block, llvm::raw_ostream &os) {
  os << "# Name, where it is in a state, dtype, shape (-1: a cache's rows).\n"
        "_STATES = tuple(runtime.State(*row) for row in (\n";
  for (StateOp state : block.getOps<StateOp>()) {
    RankedTensorType type = state.getTensorType();
    SmallVector<std::string> path = pathOf(state);
    os << "    (" << literal(state.getSymName()) << ", ("
       << llvm::join(path, ", ") << (path.size() == 1 ? ",), " : "), ")
       << dtypeOf(type.getElementType()) << ", " << shapeText(type.getShape())
       << "),\n";
  }
  os << "))\n";
}

/// Refuses names that the module cannot have.
static LogicalResult checkNames(ModuleOp module) {
  auto check = [](Operation *op, StringRef name) -> LogicalResult {
    if (!llvm::json::isUTF8(name))
      return op->emitError("name is not UTF-8, expected what Python can spell");
    if (name.contains('\0'))
      return op->emitError("name holds a zero character, expected none");
    return success();
  };
  llvm::StringMap<StateOp> states;
  for (StateOp state : module.getOps<StateOp>())
    states[state.getSymName()] = state;
  for (Operation &op : module.getOps())
    if (auto name =
            op.getAttrOfType<StringAttr>(SymbolTable::getSymbolAttrName()))
      if (failed(check(&op, name.getValue())))
        return failure();
  for (StateOp state : module.getOps<StateOp>()) {
    StringRef name = state.getSymName();
    for (size_t dot = name.find('.'); dot != StringRef::npos;
         dot = name.find('.', dot + 1)) {
      auto other = states.find(name.take_front(dot));
      if (other == states.end())
        continue;
      InFlightDiagnostic error =
          state.emitError("state ")
          << literal(name) << " lies inside state " << literal(other->getKey())
          << ", expected names of which none starts another, to nest them";
      error.attachNote(other->second.getLoc()) << "the other state";
      return error;
    }
  }
  return success();
}

FailureOr<TorchModule> mega::emitTorchModule(ModuleOp module,
                                             StringRef source) {
  if (failed(checkNames(module)))
    return failure();
  BlockOp block = *module.getOps<BlockOp>().begin();
  TorchModule result;
  result.className = classNameOf(block.getSymName());
  auto vector = [](Type type) {
    return typeText(cast<RankedTensorType>(type));
  };

  llvm::raw_string_ostream os(result.module);
  os << "# One decode step of block " << literal(block.getSymName())
     << " as a torch module. Written by\n# megalithc from " << literal(source)
     << "; edits are lost when it is written again. The\n"
        "# kernel is in bundle/kernel.cu, to read, and in bundle/*.cubin, to "
        "run.\n"
        "#\n"
        "# hidden in:  "
     << vector(block.getArgumentTypes()[0])
     << "\n# hidden out: " << vector(block.getResultTypes()[0]) << "\n";
  for (StateOp state : module.getOps<StateOp>()) {
    os << "# state";
    for (const std::string &key : pathOf(state))
      os << "[" << key << "]";
    os << ": " << typeText(state.getTensorType())
       << (state.isCache() ? ", a row more after each step\n" : "\n");
  }
  os << "\nfrom pathlib import Path\n\nimport torch\n\n"
        "from .megalith import torch as runtime\n\n";
  writeWeights(module, os);
  os << "\n";
  writeStates(module, os);
  os << "\n\nclass " << result.className
     << "(runtime.BlockModule):\n"
        "    \"\"\"step(hidden, state) -> (hidden, state): one token, one "
        "launch.\n\n"
        "    load_state_dict takes the checkpoint; .to(\"cuda\") chooses the "
        "device;\n"
        "    new_state() is a zero state. runtime.BlockModule documents "
        "them.\n"
        "    \"\"\"\n\n"
        "    bundle_path = Path(__file__).parent / \"bundle\"\n"
        "    weight_table = _WEIGHTS\n"
        "    state_table = _STATES\n";

  llvm::raw_string_ostream init(result.init);
  init << "# Written by megalithc: see module.py.\n\nfrom .module import "
       << result.className << "\n\n__all__ = [\"" << result.className
       << "\"]\n";
  return result;
}
