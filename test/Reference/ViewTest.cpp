// SPDX-License-Identifier: Apache-2.0
/// \file
/// mega.slice and mega.reshape.

#include "Support.h"

using namespace mega::test;

namespace {

class ViewTest : public BlockTest {};

TEST_F(ViewTest, SliceOfVector) {
  load(R"(
    mega.block @b(%x: tensor<6xf32>) -> tensor<3xf32> {
      %y = mega.slice %x from 2 : tensor<6xf32> -> tensor<3xf32>
      mega.return %y : tensor<3xf32>
    })");
  EXPECT_EQ(run({0, 1, 2, 3, 4, 5}), (Numbers{2, 3, 4}));
}

TEST_F(ViewTest, SliceOfRowsAfterReshape) {
  load(R"(
    mega.block @b(%x: tensor<12xf32>) -> tensor<6xf32> {
      %r = mega.reshape %x : tensor<12xf32> -> tensor<3x4xf32>
      %s = mega.slice %r from 1 : tensor<3x4xf32> -> tensor<3x2xf32>
      %y = mega.reshape %s : tensor<3x2xf32> -> tensor<6xf32>
      mega.return %y : tensor<6xf32>
    })");
  EXPECT_EQ(run({0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}),
            (Numbers{1, 2, 5, 6, 9, 10}));
}

} // namespace
