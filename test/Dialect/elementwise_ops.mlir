// SPDX-License-Identifier: Apache-2.0
// RUN: megalith-opt %s --verify-roundtrip | FileCheck %s

// CHECK-LABEL: mega.block @map_one(
// CHECK-SAME: %[[X:.*]]: tensor<64xbf16>
mega.block @map_one(%x: tensor<64xbf16>) -> tensor<64xbf16> {
  // CHECK: %[[Y:.*]] = mega.map(%[[A:.*]] = %[[X]]) : (tensor<64xbf16>) -> tensor<64xbf16> {
  // CHECK-NEXT: %[[N:.*]] = arith.negf %[[A]] : f32
  // CHECK-NEXT: mega.yield %[[N]]
  %y = mega.map(%a = %x) : (tensor<64xbf16>) -> tensor<64xbf16> {
    %n = arith.negf %a : f32
    mega.yield %n
  }
  // CHECK: mega.return %[[Y]]
  mega.return %y : tensor<64xbf16>
}

// Operands may differ in element type, not in shape.
// CHECK-LABEL: mega.block @map_mixed_types(
mega.block @map_mixed_types(%x: tensor<64xbf16>) -> tensor<64xbf16> {
  // CHECK: (tensor<64xbf16>) -> tensor<64xf32>
  %f = mega.map(%a = %x) : (tensor<64xbf16>) -> tensor<64xf32> {
    mega.yield %a
  }
  // CHECK: mega.map(%{{.*}} = %{{.*}}, %{{.*}} = %{{.*}}) : (tensor<64xbf16>, tensor<64xf32>) -> tensor<64xbf16>
  %y = mega.map(%a = %x, %b = %f)
      : (tensor<64xbf16>, tensor<64xf32>) -> tensor<64xbf16> {
    %s = arith.addf %a, %b : f32
    mega.yield %s
  }
  mega.return %y : tensor<64xbf16>
}

// CHECK-LABEL: mega.block @map_attributes(
mega.block @map_attributes(%x: tensor<64xbf16>) -> tensor<64xbf16> {
  // CHECK: mega.map(%{{.*}} = %{{.*}}) {note = "kept"} : (tensor<64xbf16>) -> tensor<64xbf16>
  %y = mega.map(%a = %x) {note = "kept"}
      : (tensor<64xbf16>) -> tensor<64xbf16> {
    mega.yield %a
  }
  mega.return %y : tensor<64xbf16>
}

// CHECK-LABEL: mega.block @map_scalar_ops(
mega.block @map_scalar_ops(%x: tensor<64xbf16>) -> tensor<64xbf16> {
  %y = mega.map(%a = %x) : (tensor<64xbf16>) -> tensor<64xbf16> {
    // CHECK: arith.constant
    %c = arith.constant 1.0 : f32
    // CHECK-NEXT: arith.addf
    %0 = arith.addf %a, %c : f32
    // CHECK-NEXT: arith.subf
    %1 = arith.subf %0, %c : f32
    // CHECK-NEXT: arith.mulf
    %2 = arith.mulf %1, %c : f32
    // CHECK-NEXT: arith.divf
    %3 = arith.divf %2, %c : f32
    // CHECK-NEXT: arith.negf
    %4 = arith.negf %3 : f32
    // CHECK-NEXT: arith.maximumf
    %5 = arith.maximumf %4, %c : f32
    // CHECK-NEXT: arith.minimumf
    %6 = arith.minimumf %5, %c : f32
    // CHECK-NEXT: math.exp
    %7 = math.exp %6 : f32
    // CHECK-NEXT: math.log1p
    %8 = math.log1p %7 : f32
    // CHECK-NEXT: math.tanh
    %9 = math.tanh %8 : f32
    // CHECK-NEXT: math.sqrt
    %10 = math.sqrt %9 : f32
    // CHECK-NEXT: math.rsqrt
    %11 = math.rsqrt %10 : f32
    // CHECK-NEXT: math.absf
    %12 = math.absf %11 : f32
    mega.yield %12
  }
  mega.return %y : tensor<64xbf16>
}

// CHECK-LABEL: mega.block @reshape(
mega.block @reshape(%x: tensor<64xbf16>) -> tensor<64xbf16> {
  // CHECK: mega.reshape %{{.*}} : tensor<64xbf16> -> tensor<4x16xbf16>
  %h = mega.reshape %x : tensor<64xbf16> -> tensor<4x16xbf16>
  // CHECK: mega.reshape %{{.*}} : tensor<4x16xbf16> -> tensor<64xbf16>
  %y = mega.reshape %h : tensor<4x16xbf16> -> tensor<64xbf16>
  mega.return %y : tensor<64xbf16>
}

// CHECK-LABEL: mega.block @slice(
mega.block @slice(%x: tensor<64xbf16>) -> tensor<64xbf16> {
  // CHECK: mega.slice %{{.*}} from 48 : tensor<64xbf16> -> tensor<16xbf16>
  %tail = mega.slice %x from 48 : tensor<64xbf16> -> tensor<16xbf16>
  mega.return %x : tensor<64xbf16>
}
