// SPDX-License-Identifier: Apache-2.0
/// \file
/// Reads and writes schedule files.

#include "mega/Transforms/ScheduleFile.h"

#include "mega/Support/Json.h"

#include "llvm/ADT/SetVector.h"

using namespace mlir;
using namespace mega;
namespace json = llvm::json;

static constexpr StringLiteral kFormat = "megalith-schedule";

namespace {

/// Takes values out of the parsed file, or says what is wrong with them.
class Reader {
public:
  explicit Reader(StringRef file) : file(file) {}

  llvm::Error error(const llvm::Twine &message) const {
    return llvm::createStringError(file + ": " + message);
  }

  /// What `object` has as `key` is not what it should be.
  llvm::Error wrong(const json::Object &object, StringRef key,
                    const llvm::Twine &expected) const {
    std::string found = "missing";
    if (const json::Value *value = object.get(key)) {
      found.clear();
      llvm::raw_string_ostream(found) << *value;
      // A value may be the whole file.
      constexpr size_t kShown = 40;
      if (found.size() > kShown)
        found = found.substr(0, kShown) + "...";
    }
    return error("key '" + key + "' is " + found + ", expected " + expected);
  }

  llvm::Expected<std::vector<std::string>> names(const json::Value &value,
                                                 const llvm::Twine &where) {
    const json::Array *array = value.getAsArray();
    if (!array)
      return error(where + " is no array, expected names of stages");
    std::vector<std::string> result;
    for (const json::Value &entry : *array) {
      std::optional<StringRef> name = entry.getAsString();
      if (!name)
        return error(where + " holds what is no string, expected names of "
                             "stages");
      result.push_back(name->str());
    }
    return result;
  }

  llvm::Expected<ScheduleFile> read(const json::Object &object) {
    for (const auto &[key, value] : object)
      if (!llvm::is_contained(
              {"format", "version", "block", "phases", "counters"},
              StringRef(key)))
        return error("key '" + StringRef(key) +
                     "' is unknown, expected format, version, block, phases "
                     "or counters");
    if (object.getString("format") != kFormat)
      return wrong(object, "format", "\"" + kFormat + "\"");
    if (object.getInteger("version") != 1)
      return wrong(object, "version", "1");
    ScheduleFile result;
    std::optional<StringRef> block = object.getString("block");
    if (!block)
      return wrong(object, "block", "the name of the block");
    result.block = block->str();
    const json::Array *phases = object.getArray("phases");
    if (!phases)
      return wrong(object, "phases", "an array of phases");
    for (auto [index, phase] : llvm::enumerate(*phases)) {
      auto stages = names(phase, "phase " + llvm::Twine(index));
      if (!stages)
        return stages.takeError();
      if (stages->empty())
        return error("phase " + llvm::Twine(index) +
                     " has 0 stages, expected at least 1");
      result.phases.push_back(std::move(*stages));
    }
    const json::Value *counters = object.get("counters");
    if (!counters)
      return result;
    if (!counters->getAsArray())
      return wrong(object, "counters", "an array of pairs of stages");
    for (auto [index, entry] : llvm::enumerate(*counters->getAsArray())) {
      auto pair = names(entry, "counters entry " + llvm::Twine(index));
      if (!pair)
        return pair.takeError();
      if (pair->size() != 2)
        return error("counters entry " + llvm::Twine(index) + " has " +
                     llvm::Twine(pair->size()) + " stages, expected 2");
      std::pair<std::string, std::string> stages((*pair)[0], (*pair)[1]);
      for (auto [before, known] : llvm::enumerate(result.counters))
        if (known == stages)
          return error("counters entry " + llvm::Twine(index) + " is '" +
                       stages.first + "' and '" + stages.second +
                       "', as entry " + llvm::Twine(before) +
                       " is, expected each pair once");
      result.counters.push_back(std::move(stages));
    }
    return result;
  }

private:
  StringRef file;
};

} // namespace

llvm::Expected<ScheduleFile> mega::parseScheduleFile(StringRef text,
                                                     StringRef file) {
  Reader reader(file);
  llvm::Expected<json::Value> value = parseJson(text, file);
  if (!value)
    return value.takeError();
  const json::Object *object = value->getAsObject();
  if (!object)
    return reader.error("schedule file is not a JSON object");
  return reader.read(*object);
}

ScheduleFile mega::extractSchedule(Operation *container) {
  ScheduleFile result;
  result.block = cast<SymbolOpInterface>(container).getName().str();
  bool divided = true;
  for (Operation &op : container->getRegion(0).front()) {
    divided |= isa<GridBarrierOp>(op);
    auto phase = dyn_cast<PhaseOp>(op);
    if (!phase)
      continue;
    for (StageOp stage : phase.getBody().getOps<StageOp>()) {
      // Phases that no barrier divides are one.
      if (divided)
        result.phases.emplace_back();
      divided = false;
      result.phases.back().push_back(stage.getName().str());
    }
  }
  for (CountersOp counters : container->getRegion(0).getOps<CountersOp>()) {
    llvm::SetVector<Operation *> from, to;
    for (Operation *user : counters.getCounters().getUsers()) {
      if (isa<SignalOp>(user))
        from.insert(user->getParentOp());
      if (isa<WaitOp>(user))
        to.insert(user->getParentOp());
    }
    for (Operation *earlier : from)
      for (Operation *later : to)
        result.counters.emplace_back(cast<StageOp>(earlier).getName(),
                                     cast<StageOp>(later).getName());
  }
  return result;
}

json::Value mega::toJson(const ScheduleFile &schedule) {
  json::Array phases, counters;
  for (const std::vector<std::string> &stages : schedule.phases)
    phases.push_back(json::Array(stages));
  for (const auto &[from, to] : schedule.counters)
    counters.push_back(json::Array{from, to});
  return json::Object{{"format", kFormat},
                      {"version", 1},
                      {"block", schedule.block},
                      {"phases", std::move(phases)},
                      {"counters", std::move(counters)}};
}
