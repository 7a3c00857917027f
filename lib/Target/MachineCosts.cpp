// SPDX-License-Identifier: Apache-2.0
/// \file
/// Reads the costs of a machine file.

#include "mega/Target/Machine.h"

#include "mega/Analysis/CostModel.h"
#include "mega/Support/Json.h"

using namespace mlir;
using namespace mega;
namespace json = llvm::json;

namespace {

/// Reads numbers of one file; the first that is wrong stays the error.
class CostReader {
public:
  explicit CostReader(StringRef file) : file(file) {}

  /// `object[key]`, a number of at least 0; `path` is where the object stands.
  double number(const json::Object &object, StringRef key,
                const llvm::Twine &path) {
    std::optional<double> value = object.getNumber(key);
    if (!value || !(*value >= 0))
      refuse(path + key + "' is missing or no number of at least 0");
    return value.value_or(0);
  }

  std::optional<double> optionalNumber(const json::Object &object,
                                       StringRef key, const llvm::Twine &path) {
    if (!object.get(key))
      return std::nullopt;
    return number(object, key, path);
  }

  /// Calls `row` for each object of the array `costs[key]`, which has some and
  /// ascends in `size`.
  void rows(
      const json::Object &costs, StringRef key, StringRef size,
      llvm::function_ref<void(const json::Object &, const std::string &)> row) {
    std::string path = ("costs." + key).str();
    const json::Array *array = costs.getArray(key);
    if (!array || array->empty())
      return refuse(path + "' is missing or no array of objects");
    double last = -1;
    for (auto [index, value] : llvm::enumerate(*array)) {
      std::string at = path + "[" + std::to_string(index) + "].";
      const json::Object *object = value.getAsObject();
      if (!object)
        return refuse(path + "' is missing or no array of objects");
      double now = number(*object, size, at);
      if (now <= last)
        return refuse(at + size.str() + "' is " + std::to_string(now) +
                      ", expected more than the row before");
      last = now;
      row(*object, at);
    }
  }

  /// Refuses what is no coefficient of the cost model.
  void expectTerm(StringRef key) {
    std::string known = (kSkewKey + ", " + kCounterSkewKey).str();
    bool found = key == kSkewKey || key == kCounterSkewKey;
    for (const CostTerm &term : costTerms()) {
      found |= key == term.key;
      known += (", " + term.key).str();
    }
    if (!found)
      refuse("costs.phase." + key + "' is unknown, expected one of " + known);
  }

  void refuse(const llvm::Twine &what) {
    if (message.empty())
      message = (file + ": key '" + what).str();
  }

  StringRef file;
  std::string message;
};

} // namespace

llvm::Expected<MachineCosts> mega::parseMachineCosts(StringRef text,
                                                     StringRef file) {
  llvm::Expected<json::Value> value = parseJson(text, file);
  if (!value)
    return value.takeError();
  const json::Object *object = value->getAsObject();
  const json::Object *costs = object ? object->getObject("costs") : nullptr;
  if (!costs)
    return llvm::createStringError(file +
                                   ": key 'costs' is missing or no object; "
                                   "megalith-bench --calibrate measures them");
  MachineCosts result;
  result.calibrated = object->getBoolean("calibrated").value_or(false);
  CostReader reader(file);
  result.clockGhz = reader.number(*costs, "clock_ghz", "costs.");
  result.launchUs = reader.number(*costs, "launch_us", "costs.");
  result.flagUs = reader.number(*costs, "flag_us", "costs.");
  reader.rows(*costs, "stream", "mib",
              [&](const json::Object &row, const std::string &at) {
                double mib = reader.number(row, "mib", at);
                if (mib <= 0)
                  reader.refuse(at + "mib' is 0, expected more");
                result.stream.push_back({mib, reader.number(row, "gbps", at)});
              });
  reader.rows(*costs, "in_flight", "kib",
              [&](const json::Object &row, const std::string &at) {
                result.inFlight.push_back(
                    {reader.number(row, "kib", at),
                     reader.optionalNumber(row, "gbps", at),
                     reader.optionalNumber(row, "barrier_us", at),
                     reader.optionalNumber(row, "edge_us", at),
                     reader.optionalNumber(row, "flagged_edge_us", at),
                     reader.optionalNumber(row, "counter_us", at)});
              });
  const json::Object *phase = costs->getObject("phase");
  if (!phase)
    reader.refuse("costs.phase' is missing or no object");
  else
    for (const auto &[key, unused] : *phase) {
      reader.expectTerm(key);
      result.phase[StringRef(key)] =
          reader.number(*phase, StringRef(key), "costs.phase.");
    }
  if (!reader.message.empty())
    return llvm::createStringError(reader.message);
  return result;
}
