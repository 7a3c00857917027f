// SPDX-License-Identifier: Apache-2.0
/// \file
/// Reads files; messages name them.

#include "JsonFile.h"

#include "mega/Support/Json.h"

#include "llvm/Support/Error.h"
#include "llvm/Support/MemoryBuffer.h"

using namespace mega;
namespace json = llvm::json;

llvm::Expected<std::string> mega::readText(llvm::StringRef path,
                                           llvm::StringRef what) {
  auto file = llvm::MemoryBuffer::getFile(path);
  if (!file)
    return fileError(file.getError(), "cannot read " + what + path);
  return (*file)->getBuffer().str();
}

llvm::Expected<json::Value> mega::readJson(llvm::StringRef path,
                                           llvm::StringRef what) {
  auto text = readText(path, what);
  if (!text)
    return text.takeError();
  return parseJson(*text, path);
}

llvm::Expected<json::Object> mega::readJsonObject(llvm::StringRef path,
                                                  llvm::StringRef format,
                                                  llvm::StringRef expected,
                                                  llvm::StringRef what) {
  auto value = readJson(path, what);
  if (!value)
    return value.takeError();
  json::Object *object = value->getAsObject();
  if (!object || object->getString("format") != format)
    return llvm::createStringError(path + " has no format '" + format +
                                   "', expected " + expected);
  return std::move(*object);
}
