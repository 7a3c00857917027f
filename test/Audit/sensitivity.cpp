// SPDX-License-Identifier: Apache-2.0
/// \file
/// Whether the numbers that megalith-audit makes up can tell a right kernel
/// from a wrong one: by the reference interpreter, every tensor of the weights
/// (and each expert's part of a stack) that is zeroed, and every state that is
/// overwritten, must change an output. What does not would fail the audit of a
/// kernel that is right.
///
///   audit-sensitivity FILE.mlir WEIGHTS
///
/// WEIGHTS as in megalith-audit --weights. Prints what changes nothing.

#include "../../tools/megalith-audit/DescriptionOracle.h"
#include "../../tools/megalith-audit/core/Checks.h"
#include "../../tools/megalith-run/Tensors.h"

#include "mega/runtime/RandomInit.h"

#include "llvm/Support/raw_ostream.h"

using namespace mega;
using namespace mega::audit;
using megalith::take;

namespace {

/// An LLVM value, or its error as the exception that audits throw.
template <typename T> T must(llvm::Expected<T> value) {
  if (!value)
    megalith::fail(MEGALITH_INTERNAL, "{}", llvm::toString(value.takeError()));
  return std::move(*value);
}

/// As megalith-audit does on a GPU.
constexpr int64_t context = 16, plainTokens = 4, maxTokens = 256;

class Study {
public:
  Study(const run::Options &options)
      : description(must(run::Description::load(options))),
        weights(must(run::loadWeights(options, description->manifest()))) {}

  /// The number of parts that change nothing.
  int run() {
    std::unique_ptr<Oracle> whole = oracle(weights);
    for (int64_t i = 0; i < maxTokens; ++i)
      outputs.push_back(first(*whole, i));
    for (const megalith::WeightDesc &weight : manifest().weights)
      for (const megalith::TensorDesc &desc : weight.tensors)
        for (int64_t e = 0; e < weight.experts(); ++e)
          tryPart(weight, desc.name, e);
    for (const megalith::StateDesc &desc : manifest().states)
      tryState(*whole, desc);
    llvm::outs() << parts << " parts, " << dead << " change nothing\n";
    return dead;
  }

private:
  const megalith::Manifest &manifest() { return description->manifest(); }
  std::unique_ptr<Oracle> oracle(const TensorMap &values) {
    return must(makeOracle(*description, values, 0));
  }
  Tensor token(int64_t index) {
    const megalith::TensorDesc &input = manifest().input;
    return take(megalith::randomToken(1, fmt::format("token{}", index),
                                      input.dtype, input.shape));
  }
  Start start(uint64_t salt, int64_t rows) {
    return {take(megalith::randomStates(manifest(), salt, rows)), rows};
  }
  Tensor first(Oracle &oracle, int64_t index) {
    oracle.begin(start(0, context));
    return oracle.step(token(index));
  }
  void count(bool changes, const std::string &name) {
    ++parts;
    if (changes)
      return;
    ++dead;
    llvm::outs() << name << "\n";
  }

  void tryPart(const megalith::WeightDesc &weight, const std::string &name,
               int64_t expert) {
    const Tensor &tensor = *weights.find(name);
    uint8_t *bytes;
    Tensor copy = Tensor::allocate(tensor.dtype, tensor.shape, &bytes);
    std::copy_n(tensor.data, tensor.bytes, bytes);
    uint64_t size = tensor.bytes / uint64_t(weight.experts());
    std::fill_n(bytes + size * uint64_t(expert), size, 0);
    TensorMap changed = weights;
    changed.tensors[name] = copy;
    std::unique_ptr<Oracle> without = oracle(changed);
    bool routed = weight.experts() > 1;
    bool changes = false;
    for (int64_t i = 0; i < (routed ? maxTokens : plainTokens) && !changes; ++i)
      changes = !same(first(*without, i), outputs[size_t(i)]);
    count(changes, routed ? fmt::format("{}, expert {}", name, expert) : name);
  }

  void tryState(Oracle &oracle, const megalith::StateDesc &desc) {
    first(oracle, 0);
    Tensor kept = oracle.step(token(1));
    first(oracle, 0);
    Start replaced;
    replaced.states.tensors[desc.name] =
        start(1, context + 1).states.tensors.at(desc.name);
    replaced.position = context + 1;
    oracle.begin(replaced);
    count(!same(kept, oracle.step(token(1))), desc.name);
  }

  std::unique_ptr<run::Description> description;
  TensorMap weights;
  std::vector<Tensor> outputs;
  int parts = 0, dead = 0;
};

} // namespace

int main(int argc, char **argv) {
  if (argc != 3) {
    llvm::errs() << "usage: audit-sensitivity FILE.mlir WEIGHTS\n";
    return 2;
  }
  run::Options options;
  options.block = argv[1];
  int dead = 1;
  megalith::Status status = megalith::guard([&] {
    options.weights = must(run::parseSource("weights", argv[2]));
    dead = Study(options).run();
  });
  if (!status.ok())
    llvm::errs() << "audit-sensitivity: error: " << status.message() << "\n";
  return dead != 0;
}
