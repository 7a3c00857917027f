// SPDX-License-Identifier: Apache-2.0
// RUN: megalith-opt %s --split-input-file --verify-diagnostics

mega.state @S : tensor<2x32x32xf32>
mega.block @b(%x: tensor<256xbf16>) -> tensor<256xbf16> {
  %qs = mega.slice %x from 0 : tensor<256xbf16> -> tensor<64xbf16>
  %q = mega.reshape %qs : tensor<64xbf16> -> tensor<2x32xbf16>
  %ks = mega.slice %x from 0 : tensor<256xbf16> -> tensor<32xbf16>
  %k = mega.reshape %ks : tensor<32xbf16> -> tensor<2x16xbf16>
  %vs = mega.slice %x from 0 : tensor<256xbf16> -> tensor<64xbf16>
  %v = mega.reshape %vs : tensor<64xbf16> -> tensor<2x32xbf16>
  %betas = mega.slice %x from 0 : tensor<256xbf16> -> tensor<2xbf16>
  %beta = mega.reshape %betas : tensor<2xbf16> -> tensor<2xbf16>
  // expected-error@+1 {{'mega.delta_rule' op has q 'tensor<2x32xbf16>' and k 'tensor<2x16xbf16>', expected one shape (heads x keys)}}
  %o = mega.delta_rule %q, %k, %v, %beta, @S decay(none)
      : tensor<2x32xbf16>, tensor<2x16xbf16>, tensor<2x32xbf16>, tensor<2xbf16> -> tensor<2x32xbf16>
  mega.return %x : tensor<256xbf16>
}

// -----

mega.state @S : tensor<2x32x32xf32>
mega.block @b(%x: tensor<256xbf16>) -> tensor<256xbf16> {
  %qs = mega.slice %x from 0 : tensor<256xbf16> -> tensor<64xbf16>
  %q = mega.reshape %qs : tensor<64xbf16> -> tensor<64xbf16>
  %ks = mega.slice %x from 0 : tensor<256xbf16> -> tensor<64xbf16>
  %k = mega.reshape %ks : tensor<64xbf16> -> tensor<64xbf16>
  %vs = mega.slice %x from 0 : tensor<256xbf16> -> tensor<64xbf16>
  %v = mega.reshape %vs : tensor<64xbf16> -> tensor<2x32xbf16>
  %betas = mega.slice %x from 0 : tensor<256xbf16> -> tensor<2xbf16>
  %beta = mega.reshape %betas : tensor<2xbf16> -> tensor<2xbf16>
  // expected-error@+1 {{'mega.delta_rule' op has q 'tensor<64xbf16>' and k 'tensor<64xbf16>', expected one shape (heads x keys)}}
  %o = mega.delta_rule %q, %k, %v, %beta, @S decay(none)
      : tensor<64xbf16>, tensor<64xbf16>, tensor<2x32xbf16>, tensor<2xbf16> -> tensor<2x32xbf16>
  mega.return %x : tensor<256xbf16>
}

// -----

mega.state @S : tensor<2x32x32xf32>
mega.block @b(%x: tensor<256xbf16>) -> tensor<256xbf16> {
  %qs = mega.slice %x from 0 : tensor<256xbf16> -> tensor<64xbf16>
  %q = mega.reshape %qs : tensor<64xbf16> -> tensor<2x32xbf16>
  %ks = mega.slice %x from 0 : tensor<256xbf16> -> tensor<64xbf16>
  %k = mega.reshape %ks : tensor<64xbf16> -> tensor<2x32xbf16>
  %vs = mega.slice %x from 0 : tensor<256xbf16> -> tensor<64xbf16>
  %v = mega.reshape %vs : tensor<64xbf16> -> tensor<4x16xbf16>
  %betas = mega.slice %x from 0 : tensor<256xbf16> -> tensor<2xbf16>
  %beta = mega.reshape %betas : tensor<2xbf16> -> tensor<2xbf16>
  // expected-error@+1 {{'mega.delta_rule' op has v 'tensor<4x16xbf16>' and result 'tensor<4x16xbf16>', expected one shape (2 x values)}}
  %o = mega.delta_rule %q, %k, %v, %beta, @S decay(none)
      : tensor<2x32xbf16>, tensor<2x32xbf16>, tensor<4x16xbf16>, tensor<2xbf16> -> tensor<4x16xbf16>
  mega.return %x : tensor<256xbf16>
}

// -----

mega.state @S : tensor<2x32x32xf32>
mega.block @b(%x: tensor<256xbf16>) -> tensor<256xbf16> {
  %qs = mega.slice %x from 0 : tensor<256xbf16> -> tensor<64xbf16>
  %q = mega.reshape %qs : tensor<64xbf16> -> tensor<2x32xbf16>
  %ks = mega.slice %x from 0 : tensor<256xbf16> -> tensor<64xbf16>
  %k = mega.reshape %ks : tensor<64xbf16> -> tensor<2x32xbf16>
  %vs = mega.slice %x from 0 : tensor<256xbf16> -> tensor<64xbf16>
  %v = mega.reshape %vs : tensor<64xbf16> -> tensor<2x32xbf16>
  %betas = mega.slice %x from 0 : tensor<256xbf16> -> tensor<2xbf16>
  %beta = mega.reshape %betas : tensor<2xbf16> -> tensor<2xbf16>
  // expected-error@+1 {{'mega.delta_rule' op has v 'tensor<2x32xbf16>' and result 'tensor<2x16xbf16>', expected one shape (2 x values)}}
  %o = mega.delta_rule %q, %k, %v, %beta, @S decay(none)
      : tensor<2x32xbf16>, tensor<2x32xbf16>, tensor<2x32xbf16>, tensor<2xbf16> -> tensor<2x16xbf16>
  mega.return %x : tensor<256xbf16>
}

// -----

mega.state @S : tensor<2x32x32xf32>
mega.block @b(%x: tensor<256xbf16>) -> tensor<256xbf16> {
  %qs = mega.slice %x from 0 : tensor<256xbf16> -> tensor<64xbf16>
  %q = mega.reshape %qs : tensor<64xbf16> -> tensor<2x32xbf16>
  %ks = mega.slice %x from 0 : tensor<256xbf16> -> tensor<64xbf16>
  %k = mega.reshape %ks : tensor<64xbf16> -> tensor<2x32xbf16>
  %vs = mega.slice %x from 0 : tensor<256xbf16> -> tensor<64xbf16>
  %v = mega.reshape %vs : tensor<64xbf16> -> tensor<2x32xbf16>
  %betas = mega.slice %x from 0 : tensor<256xbf16> -> tensor<4xbf16>
  %beta = mega.reshape %betas : tensor<4xbf16> -> tensor<4xbf16>
  // expected-error@+1 {{'mega.delta_rule' op has beta 'tensor<4xbf16>', expected one value for each of 2 heads}}
  %o = mega.delta_rule %q, %k, %v, %beta, @S decay(none)
      : tensor<2x32xbf16>, tensor<2x32xbf16>, tensor<2x32xbf16>, tensor<4xbf16> -> tensor<2x32xbf16>
  mega.return %x : tensor<256xbf16>
}

// -----

mega.state @S : tensor<2x32x32xf32>
mega.block @b(%x: tensor<256xbf16>) -> tensor<256xbf16> {
  %qs = mega.slice %x from 0 : tensor<256xbf16> -> tensor<64xbf16>
  %q = mega.reshape %qs : tensor<64xbf16> -> tensor<2x32xbf16>
  %ks = mega.slice %x from 0 : tensor<256xbf16> -> tensor<64xbf16>
  %k = mega.reshape %ks : tensor<64xbf16> -> tensor<2x32xbf16>
  %vs = mega.slice %x from 0 : tensor<256xbf16> -> tensor<64xbf16>
  %v = mega.reshape %vs : tensor<64xbf16> -> tensor<2x32xbf16>
  %betas = mega.slice %x from 0 : tensor<256xbf16> -> tensor<2xbf16>
  %beta = mega.reshape %betas : tensor<2xbf16> -> tensor<2xbf16>
  // expected-error@+1 {{'mega.delta_rule' op has decay(channel) without a decay operand}}
  %o = mega.delta_rule %q, %k, %v, %beta, @S decay(channel)
      : tensor<2x32xbf16>, tensor<2x32xbf16>, tensor<2x32xbf16>, tensor<2xbf16> -> tensor<2x32xbf16>
  mega.return %x : tensor<256xbf16>
}

// -----

mega.state @S : tensor<2x32x32xf32>
mega.block @b(%x: tensor<256xbf16>) -> tensor<256xbf16> {
  %qs = mega.slice %x from 0 : tensor<256xbf16> -> tensor<64xbf16>
  %q = mega.reshape %qs : tensor<64xbf16> -> tensor<2x32xbf16>
  %ks = mega.slice %x from 0 : tensor<256xbf16> -> tensor<64xbf16>
  %k = mega.reshape %ks : tensor<64xbf16> -> tensor<2x32xbf16>
  %vs = mega.slice %x from 0 : tensor<256xbf16> -> tensor<64xbf16>
  %v = mega.reshape %vs : tensor<64xbf16> -> tensor<2x32xbf16>
  %betas = mega.slice %x from 0 : tensor<256xbf16> -> tensor<2xbf16>
  %beta = mega.reshape %betas : tensor<2xbf16> -> tensor<2xbf16>
  %ds = mega.slice %x from 0 : tensor<256xbf16> -> tensor<2xbf16>
  %d = mega.reshape %ds : tensor<2xbf16> -> tensor<2xbf16>
  // expected-error@+1 {{'mega.delta_rule' op has decay(none) with a decay operand}}
  %o = mega.delta_rule %q, %k, %v, %beta, @S decay(none) %d
      : tensor<2x32xbf16>, tensor<2x32xbf16>, tensor<2x32xbf16>, tensor<2xbf16>, tensor<2xbf16> -> tensor<2x32xbf16>
  mega.return %x : tensor<256xbf16>
}

// -----

mega.state @S : tensor<2x32x32xf32>
mega.block @b(%x: tensor<256xbf16>) -> tensor<256xbf16> {
  %qs = mega.slice %x from 0 : tensor<256xbf16> -> tensor<64xbf16>
  %q = mega.reshape %qs : tensor<64xbf16> -> tensor<2x32xbf16>
  %ks = mega.slice %x from 0 : tensor<256xbf16> -> tensor<64xbf16>
  %k = mega.reshape %ks : tensor<64xbf16> -> tensor<2x32xbf16>
  %vs = mega.slice %x from 0 : tensor<256xbf16> -> tensor<64xbf16>
  %v = mega.reshape %vs : tensor<64xbf16> -> tensor<2x32xbf16>
  %betas = mega.slice %x from 0 : tensor<256xbf16> -> tensor<2xbf16>
  %beta = mega.reshape %betas : tensor<2xbf16> -> tensor<2xbf16>
  %ds = mega.slice %x from 0 : tensor<256xbf16> -> tensor<64xbf16>
  %d = mega.reshape %ds : tensor<64xbf16> -> tensor<2x32xbf16>
  // expected-error@+1 {{'mega.delta_rule' op has decay operand 'tensor<2x32xbf16>', expected shape [2] for decay(head)}}
  %o = mega.delta_rule %q, %k, %v, %beta, @S decay(head) %d
      : tensor<2x32xbf16>, tensor<2x32xbf16>, tensor<2x32xbf16>, tensor<2xbf16>, tensor<2x32xbf16> -> tensor<2x32xbf16>
  mega.return %x : tensor<256xbf16>
}

// -----

mega.state @S : tensor<2x32x32xf32>
mega.block @b(%x: tensor<256xbf16>) -> tensor<256xbf16> {
  %qs = mega.slice %x from 0 : tensor<256xbf16> -> tensor<64xbf16>
  %q = mega.reshape %qs : tensor<64xbf16> -> tensor<2x32xbf16>
  %ks = mega.slice %x from 0 : tensor<256xbf16> -> tensor<64xbf16>
  %k = mega.reshape %ks : tensor<64xbf16> -> tensor<2x32xbf16>
  %vs = mega.slice %x from 0 : tensor<256xbf16> -> tensor<64xbf16>
  %v = mega.reshape %vs : tensor<64xbf16> -> tensor<2x32xbf16>
  %betas = mega.slice %x from 0 : tensor<256xbf16> -> tensor<2xbf16>
  %beta = mega.reshape %betas : tensor<2xbf16> -> tensor<2xbf16>
  %ds = mega.slice %x from 0 : tensor<256xbf16> -> tensor<2xbf16>
  %d = mega.reshape %ds : tensor<2xbf16> -> tensor<2xbf16>
  // expected-error@+1 {{'mega.delta_rule' op has decay operand 'tensor<2xbf16>', expected shape [2, 32] for decay(channel)}}
  %o = mega.delta_rule %q, %k, %v, %beta, @S decay(channel) %d
      : tensor<2x32xbf16>, tensor<2x32xbf16>, tensor<2x32xbf16>, tensor<2xbf16>, tensor<2xbf16> -> tensor<2x32xbf16>
  mega.return %x : tensor<256xbf16>
}

// -----

mega.block @b(%x: tensor<256xbf16>) -> tensor<256xbf16> {
  %qs = mega.slice %x from 0 : tensor<256xbf16> -> tensor<64xbf16>
  %q = mega.reshape %qs : tensor<64xbf16> -> tensor<2x32xbf16>
  %ks = mega.slice %x from 0 : tensor<256xbf16> -> tensor<64xbf16>
  %k = mega.reshape %ks : tensor<64xbf16> -> tensor<2x32xbf16>
  %vs = mega.slice %x from 0 : tensor<256xbf16> -> tensor<64xbf16>
  %v = mega.reshape %vs : tensor<64xbf16> -> tensor<2x32xbf16>
  %betas = mega.slice %x from 0 : tensor<256xbf16> -> tensor<2xbf16>
  %beta = mega.reshape %betas : tensor<2xbf16> -> tensor<2xbf16>
  // expected-error@+1 {{'mega.delta_rule' op uses state @S, which no mega.state declares}}
  %o = mega.delta_rule %q, %k, %v, %beta, @S decay(none)
      : tensor<2x32xbf16>, tensor<2x32xbf16>, tensor<2x32xbf16>, tensor<2xbf16> -> tensor<2x32xbf16>
  mega.return %x : tensor<256xbf16>
}

// -----

mega.state @S : tensor<2x32x16xf32>
mega.block @b(%x: tensor<256xbf16>) -> tensor<256xbf16> {
  %qs = mega.slice %x from 0 : tensor<256xbf16> -> tensor<64xbf16>
  %q = mega.reshape %qs : tensor<64xbf16> -> tensor<2x32xbf16>
  %ks = mega.slice %x from 0 : tensor<256xbf16> -> tensor<64xbf16>
  %k = mega.reshape %ks : tensor<64xbf16> -> tensor<2x32xbf16>
  %vs = mega.slice %x from 0 : tensor<256xbf16> -> tensor<64xbf16>
  %v = mega.reshape %vs : tensor<64xbf16> -> tensor<2x32xbf16>
  %betas = mega.slice %x from 0 : tensor<256xbf16> -> tensor<2xbf16>
  %beta = mega.reshape %betas : tensor<2xbf16> -> tensor<2xbf16>
  // expected-error@+1 {{'mega.delta_rule' op uses state @S of type 'tensor<2x32x16xf32>', expected 'tensor<2x32x32xf32>'}}
  %o = mega.delta_rule %q, %k, %v, %beta, @S decay(none)
      : tensor<2x32xbf16>, tensor<2x32xbf16>, tensor<2x32xbf16>, tensor<2xbf16> -> tensor<2x32xbf16>
  mega.return %x : tensor<256xbf16>
}

// -----

// The recurrence is carried in f32.
mega.state @S : tensor<2x32x32xbf16>
mega.block @b(%x: tensor<256xbf16>) -> tensor<256xbf16> {
  %qs = mega.slice %x from 0 : tensor<256xbf16> -> tensor<64xbf16>
  %q = mega.reshape %qs : tensor<64xbf16> -> tensor<2x32xbf16>
  %ks = mega.slice %x from 0 : tensor<256xbf16> -> tensor<64xbf16>
  %k = mega.reshape %ks : tensor<64xbf16> -> tensor<2x32xbf16>
  %vs = mega.slice %x from 0 : tensor<256xbf16> -> tensor<64xbf16>
  %v = mega.reshape %vs : tensor<64xbf16> -> tensor<2x32xbf16>
  %betas = mega.slice %x from 0 : tensor<256xbf16> -> tensor<2xbf16>
  %beta = mega.reshape %betas : tensor<2xbf16> -> tensor<2xbf16>
  // expected-error@+1 {{'mega.delta_rule' op uses state @S of type 'tensor<2x32x32xbf16>', expected 'tensor<2x32x32xf32>'}}
  %o = mega.delta_rule %q, %k, %v, %beta, @S decay(none)
      : tensor<2x32xbf16>, tensor<2x32xbf16>, tensor<2x32xbf16>, tensor<2xbf16> -> tensor<2x32xbf16>
  mega.return %x : tensor<256xbf16>
}
