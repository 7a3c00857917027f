// SPDX-License-Identifier: Apache-2.0
/// \file
/// Programs from text, passes over them, and what they say.

#ifndef MEGA_TEST_SCHEDULE_SUPPORT_H
#define MEGA_TEST_SCHEDULE_SUPPORT_H

#include "mega/Transforms/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/IR/OwningOpRef.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"

#include <string>

namespace mega::test {

/// A context with what programs use, and the errors that passes report in it.
class Session {
public:
  struct Report {
    std::string message;
    bool located = false;
    int notes = 0;
  };

  Session()
      : context(registry(), mlir::MLIRContext::Threading::DISABLED),
        handler(&context, [this](mlir::Diagnostic &diagnostic) {
          if (diagnostic.getSeverity() == mlir::DiagnosticSeverity::Error) {
            report.message = diagnostic.str();
            report.located = bool(diagnostic.getLocation()
                                      ->findInstanceOf<mlir::FileLineColLoc>());
            report.notes = std::distance(diagnostic.getNotes().begin(),
                                         diagnostic.getNotes().end());
          }
          return mlir::success();
        }) {}

  mlir::OwningOpRef<mlir::ModuleOp> parse(const std::string &text) {
    return mlir::parseSourceString<mlir::ModuleOp>(text, &context,
                                                   "program.mlir");
  }

  /// Runs the passes that `add` adds; the last error is in `getReport`.
  template <typename Add> bool run(mlir::ModuleOp module, Add add) {
    report = {};
    mlir::PassManager pm(&context);
    add(pm);
    return mlir::succeeded(pm.run(module));
  }

  const Report &getReport() const { return report; }

private:
  static mlir::DialectRegistry registry() {
    mlir::DialectRegistry result;
    result.insert<MegaDialect, mlir::arith::ArithDialect,
                  mlir::math::MathDialect>();
    return result;
  }

  mlir::MLIRContext context;
  Report report;
  mlir::ScopedDiagnosticHandler handler;
};

/// The program or kernel of `module`.
inline mlir::Operation *containerOf(mlir::ModuleOp module) {
  for (mlir::Operation &op : module.getBodyRegion().front())
    if (llvm::isa<ProgramOp, KernelOp>(op))
      return &op;
  return nullptr;
}

} // namespace mega::test

#endif // MEGA_TEST_SCHEDULE_SUPPORT_H
