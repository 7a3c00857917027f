// SPDX-License-Identifier: Apache-2.0
/// \file
/// Values of a step.

#include "Machine.h"

using namespace mlir;
using namespace mega;
using namespace mega::reference;

void Machine::set(Value value, std::vector<float> elements) {
  if (tensorTypeOf(value).getElementType().isBF16())
    for (float &element : elements)
      element = roundToBf16(element);
  values[value] = std::move(elements);
}

std::vector<float> Machine::readDense(StringRef name) const {
  const TensorView &view = dense.find(name)->second;
  std::vector<float> elements(numElements(view.shape));
  widen(view, 0, elements.size(), elements.data());
  return elements;
}

void Machine::clearValues() {
  values.clear();
  ids.clear();
  probes.clear();
}
