// SPDX-License-Identifier: Apache-2.0
/// \file
/// Writes random programs as text. All vectors have 32 elements, so that any
/// stage can read any of them.

#include "RandomProgram.h"

#include <random>
#include <vector>

namespace {

class Writer {
public:
  explicit Writer(uint64_t seed) : random(seed) {}

  std::string program(int stages) {
    for (int stage = 0; stage < stages; ++stage)
      addStage(stage, stage + 1 == stages);
    return "module attributes {mega.target = #mega.target<arch = \"sm_90a\", "
           "ctas = 4, threads = 256, shared_bytes = 131072>} {\n"
           "mega.weight @dense : tensor<32x32xbf16>\n"
           "mega.weight @quant : !mega.quant<32x32xi4, group = 32, scale = "
           "bf16, zero = bf16>\n"
           "mega.weight @taps : tensor<32x2xbf16>\n" +
           states +
           "mega.program @p(%in, %out) : !mega.buffer<32xbf16>, "
           "!mega.buffer<32xbf16> {\n" +
           allocs + body + "}\n}\n";
  }

private:
  int below(int bound) {
    return std::uniform_int_distribution<int>(0, bound - 1)(random);
  }
  bool chance(int percent) { return below(100) < percent; }

  /// A buffer of 32 bf16 that has been written, or the input.
  std::string source() {
    int index = below(int(written.size()) + 1);
    return index == int(written.size()) ? "%in" : written[index];
  }

  std::string newBuffer(const char *type) {
    std::string name = "%b" + std::to_string(buffers++);
    allocs += "  " + name + " = mega.alloc \"" + name.substr(1) +
              "\" : " + type + "\n";
    return name;
  }

  /// Where a stage that reads `inputs` writes its vector.
  std::string target(bool last, const std::vector<std::string> &inputs) {
    if (last)
      return "%out";
    if (!written.empty() && chance(30)) {
      std::string again = written[below(int(written.size()))];
      bool read = false;
      for (const std::string &input : inputs)
        read |= input == again;
      if (!read)
        return again;
    }
    std::string name = newBuffer("!mega.buffer<32xbf16>");
    pending.push_back(name);
    return name;
  }

  std::string newState(const char *type) {
    std::string name = "@s" + std::to_string(stateCount++);
    states += "mega.state " + name + " : " + type + "\n";
    return name;
  }

  void line(const std::string &text) { body += "    " + text + "\n"; }

  std::string load(const std::string &value, const std::string &buffer,
                   const std::string &type = "tensor<32xbf16>") {
    line(value + " = mega.load " + buffer + " : !mega.buffer<32xbf16> -> " +
         type);
    return value;
  }

  std::string map(const std::string &result, const std::string &value,
                  const std::string &from, const std::string &to) {
    line(result + " = mega.map(%a = " + value + ") : (" + from + ") -> " + to +
         " {\n      mega.yield %a\n    }");
    return result;
  }

  /// Stores an anchor's vector, with what may stand between.
  void finish(std::string value, bool last,
              const std::vector<std::string> &inputs) {
    const std::string vector = "tensor<32xbf16>";
    if (chance(20)) {
      std::string state = newState("tensor<1x32xbf16>");
      line("%conv = mega.short_conv " + value + ", @taps, " + state + " : " +
           vector + " -> tensor<32xf32>");
      value = map("%act", "%conv", "tensor<32xf32>", vector);
    } else if (chance(30)) {
      value = map("%act", value, vector, vector);
    }
    line("mega.store " + value + ", " + target(last, inputs) + " : " + vector +
         ", !mega.buffer<32xbf16>");
  }

  void addStage(int index, bool last) {
    body += "  mega.stage \"s" + std::to_string(index) + "\" {\n";
    int kind = below(100);
    if (!sums.empty() && chance(50))
      addSum(last);
    else if (kind < 30)
      addElementwise(last);
    else if (kind < 60)
      addLinears(last);
    else if (kind < 75 && !last)
      addSplit();
    else if (kind < 90)
      addRecurrence(last);
    else
      addCache(last);
    body += "  }\n";
    for (const std::string &name : pending)
      written.push_back(name);
    pending.clear();
  }

  void addElementwise(bool last) {
    std::string from = source();
    std::string value = load("%x", from);
    std::vector<std::string> inputs = {from};
    if (chance(40)) {
      std::string other = source();
      inputs.push_back(other);
      load("%z", other);
      line("%m = mega.map(%a = %x, %b = %z) : (tensor<32xbf16>, "
           "tensor<32xbf16>) -> tensor<32xbf16> {\n"
           "      %c = arith.addf %a, %b : f32\n      mega.yield %c\n    }");
      value = "%m";
      // Published by every CTA's prologue.
      if (!last && chance(40)) {
        std::string name = newBuffer("!mega.buffer<32xbf16>");
        line("mega.store %m, " + name +
             " : tensor<32xbf16>, !mega.buffer<32xbf16>");
        pending.push_back(name);
      }
    }
    line("%y = mega.elementwise " + value +
         " : tensor<32xbf16> -> tensor<32xbf16>");
    // In place: a tile reads and writes its own element.
    if (!last && value == "%x" && from != "%in" && chance(20)) {
      line("mega.store %y, " + from +
           " : tensor<32xbf16>, !mega.buffer<32xbf16>");
      return;
    }
    finish("%y", last, inputs);
  }

  void addLinears(bool last) {
    std::string from = source();
    load("%x", from);
    const char *weight = chance(50) ? "@dense" : "@quant";
    line(std::string("%y = mega.linear %x, ") + weight +
         " : tensor<32xbf16> -> tensor<32xbf16>");
    if (!last && chance(40)) {
      line("%w = mega.linear %x, @dense : tensor<32xbf16> -> tensor<32xbf16>");
      std::string name = newBuffer("!mega.buffer<32xbf16>");
      line("mega.store %w, " + name +
           " : tensor<32xbf16>, !mega.buffer<32xbf16>");
      pending.push_back(name);
    }
    finish("%y", last, {from});
  }

  void addSplit() {
    load("%x", source());
    std::string slots = newBuffer("!mega.buffer<3x32xf32>");
    line("%y = mega.linear %x, @quant tiling(<begin = 0, count = 2, extent = "
         "16, split = true>) : tensor<32xbf16> -> tensor<32xf32>");
    line("mega.store %y, " + slots +
         " : tensor<32xf32>, "
         "!mega.buffer<3x32xf32>");
    sums.push_back(slots);
  }

  void addSum(bool last) {
    std::string slots = sums[below(int(sums.size()))];
    line("%s = mega.load_sum " + slots +
         " : !mega.buffer<3x32xf32> -> "
         "tensor<32xbf16>");
    line("%y = mega.elementwise %s : tensor<32xbf16> -> tensor<32xbf16>");
    finish("%y", last, {});
  }

  void addRecurrence(bool last) {
    std::string q = source(), k = source(), v = source(), b = source();
    load("%q", q, "tensor<2x16xbf16>");
    load("%k", k, "tensor<2x16xbf16>");
    load("%v", v, "tensor<2x16xbf16>");
    load("%wide", b);
    line("%b = mega.slice %wide from 0 : tensor<32xbf16> -> tensor<2xbf16>");
    std::string state = newState("tensor<2x16x16xf32>");
    line("%o = mega.delta_rule %q, %k, %v, %b, " + state +
         " decay(none) : tensor<2x16xbf16>, tensor<2x16xbf16>, "
         "tensor<2x16xbf16>, tensor<2xbf16> -> tensor<2x16xbf16>");
    line("%y = mega.reshape %o : tensor<2x16xbf16> -> tensor<32xbf16>");
    line("mega.store %y, " + target(last, {q, k, v, b}) +
         " : tensor<32xbf16>, !mega.buffer<32xbf16>");
  }

  /// Appends to a cache, or attends to one that an earlier stage appended to.
  void addCache(bool last) {
    if (!caches.empty() && !last && chance(60)) {
      line("%pos = mega.position");
      load("%q", source(), "tensor<1x32xbf16>");
      map("%qa", "%q", "tensor<1x32xbf16>", "tensor<1x32xf32>");
      std::string most = newBuffer("!mega.buffer<1x4xf32>");
      line("%m, %n, %c = mega.latent_scores %qa, %q, %pos, " + caches.back() +
           ", @rope scale(1.0) : tensor<1x32xf32>, tensor<1x32xbf16> -> "
           "tensor<1x4xf32>, tensor<1x4xf32>, tensor<4x1x32xf32>");
      line("mega.store %m, " + most +
           " : tensor<1x4xf32>, "
           "!mega.buffer<1x4xf32>");
      return;
    }
    if (caches.empty())
      states += "mega.state @rope : tensor<?x16xbf16>\n";
    std::string from = source();
    std::string state = newState("tensor<?x32xbf16>");
    load("%x", from);
    line("%pos = mega.position");
    line("%y = mega.elementwise %x : tensor<32xbf16> -> tensor<32xbf16>");
    line("mega.cache_append %y, %pos, " + state + " : tensor<32xbf16>");
    caches.push_back(state);
    finish("%y", last, {from});
  }

  std::mt19937_64 random;
  std::string allocs, states, body;
  std::vector<std::string> written; ///< buffers of 32 bf16 with contents
  std::vector<std::string> pending; ///< written by the current stage
  std::vector<std::string> sums;    ///< buffers of partial sums
  std::vector<std::string> caches;
  int buffers = 0, stateCount = 0;
};

} // namespace

std::string mega::test::randomProgram(uint64_t seed, int stages) {
  return Writer(seed).program(stages);
}
