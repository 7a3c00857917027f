// SPDX-License-Identifier: Apache-2.0
/// \file
/// What a build without the compiler says instead of compiling.

#include "KernelText.h"

using namespace llvm;
using namespace mega::run;

Expected<KernelText> mega::run::compileText(const Description &) {
  return createStringError("--target=sim has no compiled kernel, and this "
                           "megalith-run-static holds no compiler, expected "
                           "--bundle=DIR");
}
