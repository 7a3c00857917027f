// SPDX-License-Identifier: Apache-2.0
/// \file
/// Reads megalith-bench's JSON.

#include "Measured.h"

#include "JsonFile.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/JSON.h"

#include <algorithm>

using namespace mega::explain;
namespace json = llvm::json;

namespace {

/// Thin accessors: what is missing reads as empty, and the caller checks what
/// it cannot do without.
const json::Array &arrayOf(const json::Object &object, llvm::StringRef key) {
  static const json::Array none;
  const json::Array *array = object.getArray(key);
  return array ? *array : none;
}

double numberAt(const json::Object &object, llvm::StringRef outer,
                llvm::StringRef inner) {
  const json::Object *nested = object.getObject(outer);
  return nested ? nested->getNumber(inner).value_or(0) : 0;
}

bool runs(const json::Object &table,
          llvm::ArrayRef<std::vector<std::string>> stages) {
  const json::Array &phases = arrayOf(table, "phases");
  if (phases.size() != stages.size())
    return false;
  for (auto [value, wanted] : llvm::zip_equal(phases, stages)) {
    const json::Object *phase = value.getAsObject();
    if (!phase)
      return false;
    std::vector<std::string> names;
    for (const json::Value &name : arrayOf(*phase, "stages"))
      names.push_back(name.getAsString().value_or("").str());
    if (names != wanted)
      return false;
  }
  return true;
}

double medianOf(std::vector<double> values) {
  if (values.empty())
    return 0;
  auto middle = values.begin() + values.size() / 2;
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

/// Clocks of one step to microseconds on one time axis.
void readSpans(const json::Object &table, double gigahertz,
               Measurement &measurement) {
  for (const json::Value &value : arrayOf(table, "clocks")) {
    auto &row = measurement.spans.emplace_back();
    const json::Array *ctas = value.getAsArray();
    if (!ctas)
      continue;
    for (const json::Value &pair : *ctas) {
      const json::Array *ends = pair.getAsArray();
      auto us = [&](size_t i) {
        return ends && ends->size() == 2
                   ? (*ends)[i].getAsNumber().value_or(0) / gigahertz / 1e3
                   : 0.0;
      };
      row.push_back({us(0), us(1)});
    }
  }
  auto &spans = measurement.spans;
  if (spans.empty())
    return;
  std::vector<double> means; // begins of each phase, as the clocks stand
  for (auto &row : spans) {
    means.push_back(0);
    for (auto [begin, end] : row)
      means.back() += begin / double(row.size());
  }
  for (size_t cta = 0; cta < spans.front().size(); ++cta) {
    std::vector<double> shifts;
    for (auto [row, mean] : llvm::drop_begin(llvm::zip_equal(spans, means)))
      shifts.push_back(mean - row[cta].first);
    double shift = medianOf(shifts);
    for (auto &row : spans) {
      row[cta].first += shift;
      row[cta].second += shift;
    }
  }
  double first = spans.front().front().first;
  for (auto [begin, end] : spans.front())
    first = std::min(first, begin);
  for (auto &row : spans)
    for (auto &[begin, end] : row) {
      begin -= first;
      end -= first;
    }
}

} // namespace

llvm::Expected<Measurement> mega::explain::readMeasurement(
    llvm::StringRef path, llvm::StringRef block,
    llvm::ArrayRef<std::vector<std::string>> stages) {
  auto root =
      readJsonObject(path, "megalith-bench", "megalith-bench --json=FILE");
  if (!root)
    return root.takeError();
  Measurement measurement;
  measurement.file = path.str();
  const json::Object *device = root->getObject("device");
  double gigahertz = device ? device->getNumber("clock_ghz").value_or(0) : 0;
  if (gigahertz <= 0)
    return llvm::createStringError(path + " has no device.clock_ghz");
  measurement.device = device->getString("name").value_or("").str();

  const json::Object *table = nullptr, *stamped = nullptr;
  for (const json::Value &entry : arrayOf(*root, "bundles"))
    if (const json::Object *bundle = entry.getAsObject())
      if (const json::Object *candidate = bundle->getObject("phase_table"))
        if (!table && bundle->getString("block") == block &&
            runs(*candidate, stages)) {
          table = candidate;
          stamped = bundle;
        }
  if (!table)
    return llvm::createStringError(
        path + " has no phase table of block '" + block + "' with these " +
        std::to_string(stages.size()) +
        " phases, expected a bundle of megalithc --instrument among those "
        "measured");
  measurement.context = table->getInteger("context").value_or(0);
  for (const json::Value &entry : arrayOf(*table, "phases")) {
    const json::Object &phase = *entry.getAsObject();
    measurement.phases.push_back({numberAt(phase, "work_us", "mean"),
                                  numberAt(phase, "wait_us", "mean"),
                                  numberAt(phase, "work_us", "max")});
  }
  readSpans(*table, gigahertz, measurement);
  for (const json::Value &entry : arrayOf(*root, "bundles")) {
    const json::Object *bundle = entry.getAsObject();
    if (!bundle || bundle->getBoolean("instrumented").value_or(true) ||
        bundle->getString("block") != block ||
        bundle->getInteger("barriers") != stamped->getInteger("barriers"))
      continue;
    for (const json::Value &row : arrayOf(*bundle, "contexts"))
      if (const json::Object *times = row.getAsObject())
        if (times->getInteger("context") == measurement.context &&
            !measurement.tokenUs)
          measurement.tokenUs = times->getNumber("us");
  }
  return measurement;
}
