// SPDX-License-Identifier: Apache-2.0
/// \file
/// What the interpreter refuses, and that threads do not change its results.

#include "Support.h"

#include "mlir/Parser/Parser.h"

using namespace mega;
using namespace mega::test;

namespace {

class InterpreterTest : public BlockTest {
protected:
  static constexpr const char *kText = R"(
    mega.weight @w : !mega.quant<128x400xi4, group = 64, scale = bf16,
                                 zero = bf16>
    mega.state @s : tensor<2x3xbf16>
    mega.block @b(%x: tensor<128xbf16>) -> tensor<400xbf16> {
      %y = mega.linear %x, @w : tensor<128xbf16> -> tensor<400xbf16>
      mega.return %y : tensor<400xbf16>
    })";

  void SetUp() override {
    addQuant("w", Quant::make(71, 1, 128, 400, 64), false);
  }

  /// Expects create to fail with a message that contains `text`.
  void expectRefusal(const std::string &text) {
    module = mlir::parseSourceString<mlir::ModuleOp>(kText, &context);
    ASSERT_TRUE(module) << diagnostics;
    auto created =
        reference::Interpreter::create(*reference::findBlock(*module), views);
    EXPECT_TRUE(mlir::failed(created));
    EXPECT_NE(diagnostics.find(text), std::string::npos) << diagnostics;
  }
};

TEST_F(InterpreterTest, MissingTensor) {
  views.erase("w.scales");
  expectRefusal("misses checkpoint tensor 'w.scales', expected 2x400xbf16");
}

TEST_F(InterpreterTest, WrongShape) {
  views["w.w_q"].shape = {64, 200};
  expectRefusal("is given checkpoint tensor 'w.w_q' of type 64x200xu8, "
                "expected 64x400xu8");
}

TEST_F(InterpreterTest, WrongType) {
  addF32("w.scales", {2, 400}, Numbers(800, 1.0));
  expectRefusal("'w.scales' of type 2x400xf32, expected 2x400xbf16");
}

TEST_F(InterpreterTest, BadZeroPoint) {
  Numbers zeros(800, 3.0);
  zeros[5] = 3.5;
  addBf16("w.zeros", {2, 400}, zeros);
  expectRefusal(
      ".zeros' with zero point 3.500000 at element 5, expected an integer in "
      "0..15");
}

TEST_F(InterpreterTest, BadState) {
  load(kText);
  uint16_t data[6] = {};
  EXPECT_TRUE(mlir::failed(interpreter->setState(
      "t", {reference::ElementType::BF16, {2, 3}, data})));
  EXPECT_NE(diagnostics.find("state 't', which no mega.state declares"),
            std::string::npos);
  EXPECT_TRUE(mlir::failed(interpreter->setState(
      "s", {reference::ElementType::BF16, {3, 2}, data})));
  EXPECT_NE(diagnostics.find("of type 3x2xbf16, expected 2x3xbf16"),
            std::string::npos)
      << diagnostics;
}

TEST_F(InterpreterTest, BadHidden) {
  load(kText);
  EXPECT_TRUE(mlir::failed(interpreter->step({1.0f})));
  EXPECT_NE(diagnostics.find("hidden vector of 1 elements, expected 128"),
            std::string::npos);
}

TEST_F(InterpreterTest, ThreadsDoNotMatter) {
  load(kText);
  Numbers x = random(72, 128, -1, 1), first = run(x);
  for (unsigned threads : {1u, 3u, 7u}) {
    auto again =
        reference::Interpreter::create(interpreter->block(), views, threads);
    ASSERT_TRUE(mlir::succeeded(again));
    auto out = (*again)->step(std::vector<float>(x.begin(), x.end()));
    ASSERT_TRUE(mlir::succeeded(out));
    EXPECT_EQ(Numbers(out->begin(), out->end()), first);
  }
}

} // namespace
