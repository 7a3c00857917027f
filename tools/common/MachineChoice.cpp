// SPDX-License-Identifier: Apache-2.0
/// \file
/// Reads the machine file once, for the target and for the costs.

#include "MachineChoice.h"

#include "JsonFile.h"

using namespace mlir;
using namespace mega;

llvm::Expected<MachineChoice>
mega::chooseMachine(MLIRContext &context, StringRef arch, StringRef path) {
  MachineChoice choice;
  if (path.empty()) {
    llvm::Expected<StringRef> text = builtinMachineText(arch);
    if (!text)
      return text.takeError();
    choice.text = text->str();
  } else {
    auto text = readText(path, "machine file ");
    if (!text)
      return text.takeError();
    choice.text = std::move(*text);
  }
  StringRef name = path.empty() ? arch : path;
  auto target = parseMachine(&context, choice.text, name);
  if (!target)
    return target.takeError();
  choice.target = *target;
  auto costs = parseMachineCosts(choice.text, name);
  if (!costs)
    return costs.takeError();
  choice.costs = std::move(*costs);
  return choice;
}
