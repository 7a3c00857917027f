// SPDX-License-Identifier: Apache-2.0
/// \file
/// The knobs, and files of their values.

#include "CompileOptions.h"

#include "JsonFile.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;
using namespace mega;
namespace json = llvm::json;

static std::string onOff(bool value) { return value ? "on" : "off"; }

static bool setOnOff(bool &value, StringRef text) {
  value = text == "on";
  return text == "on" || text == "off";
}

static std::string numberText(double value) {
  std::string text;
  llvm::raw_string_ostream(text) << llvm::format("%g", value);
  return text;
}

std::optional<RingShape> mega::parseRingShape(StringRef text) {
  auto [slots, units] = text.split('x');
  RingShape shape{};
  if (slots.getAsInteger(10, shape.slots) ||
      units.getAsInteger(10, shape.units) || shape.slots < 1 ||
      shape.slots > 4 || shape.units < 1 || shape.units > 4)
    return std::nullopt;
  return shape;
}

static bool never(const CompileOptions &) { return false; }

/// A knob is one entry: what it is called, its values, how to read and set it.
static const Knob table[] = {
    {"join-linears",
     "fusion",
     "linears of one operand share a stage",
     {"on", "off"},
     [](const CompileOptions &o) { return onOff(o.stages.joinLinears); },
     [](CompileOptions &o, StringRef text) {
       return setOnOff(o.stages.joinLinears, text);
     },
     never},
    {"publish-reused",
     "fusion",
     "publish what later stages need again, instead of computing it again",
     {"on", "off"},
     [](const CompileOptions &o) { return onOff(o.stages.publishReused); },
     [](CompileOptions &o, StringRef text) {
       return setOnOff(o.stages.publishReused, text);
     },
     never},
    {"split-below",
     "partition",
     "split reductions whose tiles keep less of the grid busy",
     {"0.9", "0", "0.6", "0.98"},
     [](const CompileOptions &o) { return numberText(o.stages.splitBelow); },
     [](CompileOptions &o, StringRef text) {
       return !text.getAsDouble(o.stages.splitBelow) &&
              o.stages.splitBelow >= 0 && o.stages.splitBelow <= 1;
     },
     never},
    {"sync",
     "sync",
     "what may order two stages",
     {"barriers", "counters"},
     [](const CompileOptions &o) -> std::string {
       return o.schedule.sync == Synchronization::Counters ? "counters"
                                                           : "barriers";
     },
     [](CompileOptions &o, StringRef text) {
       o.schedule.sync = text == "counters" ? Synchronization::Counters
                                            : Synchronization::Barriers;
       return text == "counters" || text == "barriers";
     },
     never},
    {"wait-limit",
     "sync",
     "tiles that one counter may stand for",
     {"64", "16", "256"},
     [](const CompileOptions &o) {
       return std::to_string(o.schedule.waitLimit);
     },
     [](CompileOptions &o, StringRef text) {
       return !text.getAsInteger(10, o.schedule.waitLimit) &&
              o.schedule.waitLimit > 0;
     },
     [](const CompileOptions &o) {
       return o.schedule.sync == Synchronization::Barriers;
     }},
    {"ring",
     "emission",
     "copies in flight a warp x weight units in a copy",
     {"auto", "1x3", "2x1", "2x2"},
     [](const CompileOptions &o) -> std::string {
       return o.emitter.ring ? std::to_string(o.emitter.ring->slots) + "x" +
                                   std::to_string(o.emitter.ring->units)
                             : "auto";
     },
     [](CompileOptions &o, StringRef text) {
       o.emitter.ring = parseRingShape(text);
       return o.emitter.ring || text == "auto";
     },
     never},
    {"prefetch",
     "emission",
     "load small weights and recurrent state before waiting at a barrier",
     {"on", "off"},
     [](const CompileOptions &o) { return onOff(o.emitter.prefetchWeights); },
     [](CompileOptions &o, StringRef text) {
       return setOnOff(o.emitter.prefetchWeights, text);
     },
     never},
};

llvm::ArrayRef<Knob> mega::knobs() { return table; }

json::Object mega::knobValues(const CompileOptions &options) {
  json::Object values;
  for (const Knob &knob : table)
    values[knob.name] = knob.get(options);
  return values;
}

llvm::Expected<CompileOptions> mega::parseKnobs(const json::Object &values,
                                                StringRef file) {
  CompileOptions options;
  for (const auto &[key, value] : values) {
    const Knob *knob = llvm::find_if(
        table, [&](const Knob &k) { return StringRef(key) == k.name; });
    if (knob == std::end(table)) {
      std::string known = llvm::join(
          llvm::map_range(table, [](const Knob &k) { return k.name.str(); }),
          ", ");
      return llvm::createStringError(file + ": option '" + StringRef(key) +
                                     "' is unknown, expected one of " + known);
    }
    std::optional<StringRef> text = value.getAsString();
    if (!text || !knob->set(options, *text)) {
      std::string found;
      llvm::raw_string_ostream(found) << value;
      return llvm::createStringError(
          file + ": option '" + StringRef(key) + "' is " + found +
          ", expected a text such as \"" +
          llvm::join(knob->values, "\" or \"") + "\"");
    }
  }
  return options;
}

json::Object mega::optionsFile(const CompileOptions &options) {
  return json::Object{{"format", "megalith-options"},
                      {"version", 1},
                      {"options", knobValues(options)}};
}

llvm::Expected<CompileOptions> mega::readOptionsFile(StringRef path) {
  auto object = readJsonObject(path, "megalith-options",
                               "an options file as megalith-explore writes it",
                               "options file ");
  if (!object)
    return object.takeError();
  if (object->getInteger("version") != 1)
    return llvm::createStringError(path + ": key 'version' is not 1");
  const json::Object *values = object->getObject("options");
  if (!values)
    return llvm::createStringError(path +
                                   ": key 'options' is missing or no object");
  return parseKnobs(*values, path);
}
