// SPDX-License-Identifier: Apache-2.0
/// \file
/// Reads and writes the state file.

#include "State.h"

#include "JsonFile.h"

#include "llvm/ADT/StringMap.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/raw_ostream.h"

using namespace mega;
using namespace mega::explore;
namespace json = llvm::json;

/// A text by which a candidate is found again, whatever its number.
static std::string keyOf(const json::Object &values) {
  return llvm::formatv("{0}", json::Value(json::Object(values)));
}

static json::Object subjectJson(const Subject &subject) {
  return json::Object{{"block_hash", subject.blockHash},
                      {"arch", subject.arch},
                      {"machine_hash", subject.machineHash},
                      {"context", subject.context}};
}

static json::Object candidateJson(const Candidate &candidate) {
  json::Object object{{"id", candidate.id},
                      {"options", knobValues(candidate.options)}};
  if (!candidate.error.empty())
    object["error"] = candidate.error;
  if (candidate.compiled) {
    object["barriers"] = candidate.compiled->barriers;
    object["phases"] = candidate.compiled->phases;
    object["predicted_us"] = candidate.compiled->predictedUs;
    object["workspace_bytes"] = candidate.compiled->workspaceBytes;
    object["shared_bytes"] = candidate.compiled->sharedBytes;
    object["kernel_hash"] = candidate.compiled->kernelHash;
  }
  if (candidate.assembled) {
    object["registers"] = candidate.assembled->registers;
    object["spill_bytes"] = candidate.assembled->spillBytes;
  }
  if (!candidate.bundle.empty())
    object["bundle"] = candidate.bundle;
  if (candidate.measuredUs)
    object["measured_us"] = *candidate.measuredUs;
  return object;
}

static void readCandidate(const json::Object &object, Candidate &candidate) {
  candidate.error = object.getString("error").value_or("").str();
  if (std::optional<int64_t> barriers = object.getInteger("barriers"))
    candidate.compiled =
        Compiled{*barriers,
                 object.getInteger("phases").value_or(0),
                 object.getNumber("predicted_us").value_or(0),
                 object.getInteger("workspace_bytes").value_or(0),
                 object.getInteger("shared_bytes").value_or(0),
                 object.getString("kernel_hash").value_or("").str()};
  if (std::optional<int64_t> registers = object.getInteger("registers"))
    candidate.assembled =
        Assembled{*registers, object.getInteger("spill_bytes").value_or(0)};
  candidate.bundle = object.getString("bundle").value_or("").str();
  if (std::optional<double> us = object.getNumber("measured_us"))
    candidate.measuredUs = us;
}

llvm::Error mega::explore::writeJson(llvm::StringRef path, json::Value value) {
  return writeFile(path, llvm::formatv("{0:2}\n", value).str());
}

llvm::Error mega::explore::saveState(llvm::StringRef path,
                                     const Subject &subject,
                                     llvm::ArrayRef<Candidate> candidates) {
  json::Array array;
  for (const Candidate &candidate : candidates)
    if (candidate.visited())
      array.push_back(candidateJson(candidate));
  json::Object object{{"format", "megalith-explore"},
                      {"version", 1},
                      {"block", subject.block},
                      {"subject", subjectJson(subject)},
                      {"candidates", std::move(array)}};
  return writeJson(path, std::move(object));
}

llvm::Error mega::explore::loadState(llvm::StringRef path,
                                     const Subject &subject,
                                     std::vector<Candidate> &candidates) {
  if (!llvm::sys::fs::exists(path))
    return llvm::Error::success();
  auto value = readJson(path);
  if (!value)
    return value.takeError();
  const json::Object *object = value->getAsObject();
  const json::Object *of = object ? object->getObject("subject") : nullptr;
  if (!of || object->getString("format") != "megalith-explore" ||
      json::Value(json::Object(*of)) != json::Value(subjectJson(subject)))
    return llvm::createStringError(
        path + " is of another block, machine or context, expected the same "
               "or a new folder");
  llvm::StringMap<Candidate *> known;
  for (Candidate &candidate : candidates)
    known[keyOf(knobValues(candidate.options))] = &candidate;
  if (const json::Array *array = object->getArray("candidates"))
    for (const json::Value &entry : *array)
      if (const json::Object *stored = entry.getAsObject())
        if (const json::Object *options = stored->getObject("options"))
          if (Candidate *candidate = known.lookup(keyOf(*options)))
            readCandidate(*stored, *candidate);
  return llvm::Error::success();
}
