// SPDX-License-Identifier: Apache-2.0
// RUN: megalith-opt %s --verify-roundtrip | FileCheck %s

mega.state @S : tensor<2x32x32xf32>
mega.state @S_wide : tensor<2x32x64xf32>

// CHECK-LABEL: mega.block @decay_none(
mega.block @decay_none(%x: tensor<64xbf16>) -> tensor<64xbf16> {
  %q = mega.reshape %x : tensor<64xbf16> -> tensor<2x32xbf16>
  %beta = mega.slice %x from 0 : tensor<64xbf16> -> tensor<2xbf16>
  // CHECK: mega.delta_rule %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, @S decay(none) : tensor<2x32xbf16>, tensor<2x32xbf16>, tensor<2x32xbf16>, tensor<2xbf16> -> tensor<2x32xbf16>
  %o = mega.delta_rule %q, %q, %q, %beta, @S decay(none)
      : tensor<2x32xbf16>, tensor<2x32xbf16>, tensor<2x32xbf16>, tensor<2xbf16> -> tensor<2x32xbf16>
  %y = mega.reshape %o : tensor<2x32xbf16> -> tensor<64xbf16>
  mega.return %y : tensor<64xbf16>
}

// CHECK-LABEL: mega.block @decay_head(
mega.block @decay_head(%x: tensor<64xbf16>) -> tensor<64xbf16> {
  %q = mega.reshape %x : tensor<64xbf16> -> tensor<2x32xbf16>
  %beta = mega.slice %x from 0 : tensor<64xbf16> -> tensor<2xbf16>
  // CHECK: @S decay(head) %[[D:.*]] : tensor<2x32xbf16>, tensor<2x32xbf16>, tensor<2x32xbf16>, tensor<2xbf16>, tensor<2xbf16> -> tensor<2x32xbf16>
  %o = mega.delta_rule %q, %q, %q, %beta, @S decay(head) %beta
      : tensor<2x32xbf16>, tensor<2x32xbf16>, tensor<2x32xbf16>, tensor<2xbf16>, tensor<2xbf16> -> tensor<2x32xbf16>
  %y = mega.reshape %o : tensor<2x32xbf16> -> tensor<64xbf16>
  mega.return %y : tensor<64xbf16>
}

// CHECK-LABEL: mega.block @decay_channel(
mega.block @decay_channel(%x: tensor<64xbf16>) -> tensor<64xbf16> {
  %q = mega.reshape %x : tensor<64xbf16> -> tensor<2x32xbf16>
  %beta = mega.slice %x from 0 : tensor<64xbf16> -> tensor<2xbf16>
  // CHECK: @S decay(channel) %[[D:.*]] : tensor<2x32xbf16>, tensor<2x32xbf16>, tensor<2x32xbf16>, tensor<2xbf16>, tensor<2x32xbf16> -> tensor<2x32xbf16>
  %o = mega.delta_rule %q, %q, %q, %beta, @S decay(channel) %q
      : tensor<2x32xbf16>, tensor<2x32xbf16>, tensor<2x32xbf16>, tensor<2xbf16>, tensor<2x32xbf16> -> tensor<2x32xbf16>
  %y = mega.reshape %o : tensor<2x32xbf16> -> tensor<64xbf16>
  mega.return %y : tensor<64xbf16>
}

// Values may be wider than keys.
// CHECK-LABEL: mega.block @values_wider(
mega.block @values_wider(%x: tensor<128xbf16>) -> tensor<128xbf16> {
  %qs = mega.slice %x from 0 : tensor<128xbf16> -> tensor<64xbf16>
  %q = mega.reshape %qs : tensor<64xbf16> -> tensor<2x32xbf16>
  %v = mega.reshape %x : tensor<128xbf16> -> tensor<2x64xbf16>
  %beta = mega.slice %x from 0 : tensor<128xbf16> -> tensor<2xbf16>
  // CHECK: @S_wide decay(none) tiling(<begin = 0, count = 4, extent = 32>) :
  %o = mega.delta_rule %q, %q, %v, %beta, @S_wide decay(none)
      tiling(<begin = 0, count = 4, extent = 32>)
      : tensor<2x32xbf16>, tensor<2x32xbf16>, tensor<2x64xbf16>, tensor<2xbf16>
      -> tensor<2x64xbf16>
  %y = mega.reshape %o : tensor<2x64xbf16> -> tensor<128xbf16>
  mega.return %y : tensor<128xbf16>
}
