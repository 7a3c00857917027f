// SPDX-License-Identifier: Apache-2.0
/// \file
/// The interpreter as an executor.

#include "Executor.h"
#include "Tensors.h"

#include "mlir/IR/Diagnostics.h"

using namespace llvm;
using namespace mega;
using namespace mega::run;
using megalith::Tensor;
using megalith::TensorMap;

namespace {

/// Turns diagnostics into errors.
class Collector : public mlir::ScopedDiagnosticHandler {
public:
  explicit Collector(mlir::MLIRContext *context)
      : ScopedDiagnosticHandler(context) {
    setHandler([&](mlir::Diagnostic &diagnostic) {
      raw_string_ostream stream(text);
      stream << (text.empty() ? "" : "\n") << diagnostic.getLocation() << ": "
             << diagnostic;
    });
  }
  Error take() { return createStringError(text); }

private:
  std::string text;
};

class ReferenceExecutor : public Executor {
public:
  ReferenceExecutor(const Description &description,
                    std::unique_ptr<reference::Interpreter> interpreter)
      : description(description), interpreter(std::move(interpreter)) {}

  Error begin(const TensorMap &states, int64_t position) override {
    Collector errors(description.block().getContext());
    for (const auto &[name, tensor] : states.tensors)
      if (failed(interpreter->setState(name, viewOf(tensor))))
        return errors.take();
    if (failed(interpreter->setPosition(position)))
      return errors.take();
    return Error::success();
  }

  Expected<Tensor> step(const Tensor &hidden) override {
    Collector errors(description.block().getContext());
    auto out = interpreter->step(valuesOf(hidden));
    if (failed(out))
      return errors.take();
    const megalith::TensorDesc &desc = description.manifest().output;
    return tensorOf(*out, desc.dtype, desc.shape);
  }

  Expected<std::vector<Choice>> choices() override {
    std::vector<Choice> all;
    for (const reference::RouterProbe &probe : interpreter->probes())
      all.push_back({probe.name, probe.ids, probe.gap});
    return all;
  }

  Expected<Tensor> state(const megalith::StateDesc &desc) override {
    const reference::StateValue *value = interpreter->state(desc.name);
    return tensorOf(value->values, desc.dtype,
                    {value->shape.begin(), value->shape.end()});
  }

  std::string name() const override { return "reference"; }

private:
  const Description &description;
  std::unique_ptr<reference::Interpreter> interpreter;
};

} // namespace

Expected<std::unique_ptr<Executor>>
mega::run::makeReferenceExecutor(const Description &description,
                                 const TensorMap &weights, unsigned threads,
                                 bool relaxed) {
  reference::TensorViews views;
  for (const auto &[name, tensor] : weights.tensors)
    views[name] = viewOf(tensor);
  Collector errors(description.block().getContext());
  auto made =
      reference::Interpreter::create(description.block(), views, threads);
  if (failed(made))
    return errors.take();
  (*made)->honourRelaxations(relaxed);
  return std::make_unique<ReferenceExecutor>(description, std::move(*made));
}
