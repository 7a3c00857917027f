// SPDX-License-Identifier: Apache-2.0
/// \file
/// Reads machine files.

#include "mega/Target/Machine.h"

#include "mega/Support/Json.h"

#include <string_view>
#include <utility>
#include <vector>

using namespace mlir;
using namespace mega;

namespace mega::detail {
/// The shipped files, embedded by CMake: (file name, text).
std::vector<std::pair<std::string_view, std::string_view>> machineFiles();
} // namespace mega::detail

static llvm::Error fileError(StringRef file, const llvm::Twine &message) {
  return llvm::createStringError(file + ": " + message);
}

llvm::Expected<TargetAttr> mega::parseMachine(MLIRContext *context,
                                              StringRef json, StringRef file) {
  llvm::Expected<llvm::json::Value> value = parseJson(json, file);
  if (!value)
    return value.takeError();
  const llvm::json::Object *object = value->getAsObject();
  if (!object)
    return fileError(file, "machine file is not a JSON object");
  std::optional<llvm::StringRef> arch = object->getString("arch");
  if (!arch)
    return fileError(file, "key 'arch' is missing or no string");
  context->loadDialect<MegaDialect>();
  int64_t numbers[3];
  constexpr llvm::StringLiteral keys[3] = {"ctas", "threads", "shared_bytes"};
  for (auto [slot, key] : llvm::zip_equal(numbers, keys)) {
    std::optional<int64_t> number = object->getInteger(key);
    if (!number)
      return fileError(file, llvm::Twine("key '") + key +
                                 "' is missing or no integer");
    slot = *number;
  }
  std::string message;
  ScopedDiagnosticHandler handler(context, [&](Diagnostic &diag) {
    message = diag.str();
    return success();
  });
  auto target = TargetAttr::getChecked(
      [&] { return emitError(UnknownLoc::get(context)); }, context, *arch,
      numbers[0], numbers[1], numbers[2]);
  if (!target)
    return fileError(file, message);
  return target;
}

llvm::Expected<StringRef> mega::builtinMachineText(StringRef arch) {
  std::string known;
  for (auto [file, text] : mega::detail::machineFiles()) {
    StringRef name(file.data(), file.size());
    name.consume_back(".json");
    if (name == arch)
      return StringRef(text.data(), text.size());
    known += (known.empty() ? "" : ", ") + name.str();
  }
  return llvm::createStringError("arch '" + arch.str() +
                                 "' has no machine file, expected one of " +
                                 known);
}

llvm::Expected<TargetAttr> mega::builtinMachine(MLIRContext *context,
                                                StringRef arch) {
  llvm::Expected<StringRef> text = builtinMachineText(arch);
  if (!text)
    return text.takeError();
  return parseMachine(context, *text, arch);
}
