#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes a block description: KDA and MLA layers, each with a routed MoE.

    examples/make_block.py --pattern KKKM --experts 64 > block.mlir

K is a gated delta-rule layer, M a multi-head latent attention layer. Every
size is a flag; the defaults are the W4A16 Kimi-Linear decode motif. The files
in this folder were written by this script (see examples/README.md).
"""

import argparse
import re

SILU = """\
      %one = arith.constant 1.0 : f32
      %neg = arith.negf %{x} : f32
      %exp = math.exp %neg : f32
      %den = arith.addf %exp, %one : f32
      %silu = arith.divf %{x}, %den : f32"""

SIGMOID = """\
      %one = arith.constant 1.0 : f32
      %neg = arith.negf %{x} : f32
      %exp = math.exp %neg : f32
      %den = arith.addf %exp, %one : f32
      %sig = arith.divf %one, %den : f32"""


class Writer:
    """Collects declarations and the block's body."""

    def __init__(self, args):
        self.a = args
        self.weights, self.states, self.body = [], [], []

    def quant(self, name, inputs, outputs, experts=None):
        stack = f"{experts}x" if experts else ""
        self.weights.append(
            f'mega.weight @"{name}" : !mega.quant<{stack}{inputs}x{outputs}xi4,'
            f" group = {self.a.group}, scale = bf16, zero = bf16>")

    def dense(self, name, *shape):
        dims = "x".join(map(str, shape))
        self.weights.append(f'mega.weight @"{name}" : tensor<{dims}xbf16>')

    def state(self, name, dims, element):
        self.states.append(f'mega.state @"{name}" : tensor<{dims}x{element}>')

    def line(self, text):
        self.body.append(f"    {text}" if text else "")

    def map(self, result, inputs, types, to, scalar, value):
        pairs = ", ".join(f"%{k} = %{v}" for k, v in inputs)
        self.line(f"%{result} = mega.map({pairs}) : "
                  f"({', '.join(types)}) -> {to} {{")
        self.body.append(scalar)
        self.body.append(f"      mega.yield %{value}")
        self.line("}")


def add(w, result, x, y, t):
    w.map(result, [("a", x), ("b", y)], [t, t], t,
          "      %sum = arith.addf %a, %b : f32", "sum")


def linear(w, result, x, name, k, n):
    w.line(f'%{result} = mega.linear %{x}, @"{name}"'
           f" : tensor<{k}xbf16> -> tensor<{n}xbf16>")


def kda(w, b, x):
    a, p = w.a, f"blocks.{b}.attn"
    h, dk, d = a.kda_heads, a.kda_dim, a.hidden
    c = h * dk
    w.dense(f"{p}.conv_w", 3, c, a.taps)
    for t in "qkvg":
        w.quant(f"{p}.{t}_proj", d, c)
    w.dense(f"{p}.beta_proj.weight", h, d)
    w.quant(f"{p}.o_proj", c, d)
    w.state(f"{b}.S", f"{h}x{dk}x{dk}", "f32")
    for t in "qkv":
        w.state(f"{b}.c{t}", f"{a.taps - 1}x{c}", "bf16")

    vec, vecf, head = (f"tensor<{c}xbf16>", f"tensor<{c}xf32>",
                       f"tensor<{h}x{dk}xbf16>")
    headf = f"tensor<{h}x{dk}xf32>"
    for i, t in enumerate("qkv"):
        linear(w, f"{t}{b}", x, f"{p}.{t}_proj", d, c)
        w.line(f'%{t}conv{b} = mega.short_conv %{t}{b}, @"{p}.conv_w"[{i}],'
               f' @"{b}.c{t}" : {vec} -> {vecf}')
        w.map(f"{t}act{b}", [("z", f"{t}conv{b}")], [vecf], vec,
              SILU.format(x="z"), "silu")
        w.line(f"%{t}head{b} = mega.reshape %{t}act{b} : {vec} -> {head}")
    w.map(f"qs{b}", [("z", f"qhead{b}")], [head], headf,
          f"      %s = arith.constant {dk ** -0.5!r} : f32\n"
          "      %scaled = arith.mulf %z, %s : f32", "scaled")
    linear(w, f"f{b}", x, f"{p}.g_proj", d, c)
    w.line("// exp(-softplus(f)) = sigmoid(-f)")
    w.map(f"d{b}", [("z", f"f{b}")], [vec], vecf,
          "      %m = arith.negf %z : f32\n" + SIGMOID.format(x="m"), "sig")
    w.line(f"%decay{b} = mega.reshape %d{b} : {vecf} -> {headf}")
    w.line(f'%bl{b} = mega.linear %{x}, @"{p}.beta_proj.weight"'
           f" : tensor<{d}xbf16> -> tensor<{h}xbf16>")
    w.map(f"beta{b}", [("z", f"bl{b}")], [f"tensor<{h}xbf16>"],
          f"tensor<{h}xf32>", SIGMOID.format(x="z"), "sig")
    w.line(f"%o{b} = mega.delta_rule %qs{b}, %khead{b}, %vhead{b}, %beta{b},"
           f' @"{b}.S" decay(channel) %decay{b}')
    w.line(f"    : {headf}, {head}, {head}, tensor<{h}xf32>, {headf} -> {head}")
    w.line(f"%of{b} = mega.reshape %o{b} : {head} -> {vec}")
    linear(w, f"a{b}", f"of{b}", f"{p}.o_proj", c, d)
    return f"a{b}"


def mla(w, b, x):
    a, p = w.a, f"blocks.{b}.attn"
    h, d = a.mla_heads, a.hidden
    qd, lat, rope = a.qk_nope + a.qk_rope, a.kv_lora, a.qk_rope
    w.quant(f"{p}.q_proj", d, h * qd)
    w.quant(f"{p}.kv_a", d, lat + rope)
    w.quant(f"{p}.kv_b", lat, h * (a.qk_nope + a.v_head))
    w.quant(f"{p}.o_proj", h * a.v_head, d)
    w.state(f"{b}.c_kv", f"?x{lat}", "bf16")
    w.state(f"{b}.k_rope", f"?x{rope}", "bf16")

    head = f"tensor<{h}x{qd}xbf16>"
    linear(w, f"q{b}", x, f"{p}.q_proj", d, h * qd)
    linear(w, f"kv{b}", x, f"{p}.kv_a", d, lat + rope)
    w.line(f"%qh{b} = mega.reshape %q{b} : tensor<{h * qd}xbf16> -> {head}")
    w.line(f"%qr{b} = mega.rope %qh{b}, %pos interleaved"
           f" range({a.qk_nope}, {rope}) theta({a.theta}) : {head} -> {head}")
    w.line(f"%c{b} = mega.slice %kv{b} from 0"
           f" : tensor<{lat + rope}xbf16> -> tensor<{lat}xbf16>")
    w.line(f"%r{b} = mega.slice %kv{b} from {lat}"
           f" : tensor<{lat + rope}xbf16> -> tensor<{rope}xbf16>")
    w.line(f"%rr{b} = mega.rope %r{b}, %pos interleaved range(0, {rope})"
           f" theta({a.theta}) : tensor<{rope}xbf16> -> tensor<{rope}xbf16>")
    w.line(f'mega.cache_append %c{b}, %pos, @"{b}.c_kv" : tensor<{lat}xbf16>')
    w.line(f'mega.cache_append %rr{b}, %pos, @"{b}.k_rope"'
           f" : tensor<{rope}xbf16>")
    w.line(f'%o{b} = mega.latent_attention %qr{b}, %pos, @"{b}.c_kv",'
           f' @"{b}.k_rope", @"{p}.kv_b" scale({qd ** -0.5!r}) absorb')
    w.line(f"    : {head} -> tensor<{h}x{a.v_head}xbf16>")
    w.line(f"%of{b} = mega.reshape %o{b} : tensor<{h}x{a.v_head}xbf16>"
           f" -> tensor<{h * a.v_head}xbf16>")
    linear(w, f"a{b}", f"of{b}", f"{p}.o_proj", h * a.v_head, d)
    return f"a{b}"


def moe(w, b, x):
    a, p = w.a, f"blocks.{b}.moe"
    d, e, k, m = a.hidden, a.experts, a.top_k, a.inter
    w.dense(f"{p}.router.weight", e, d)
    for t in ("gate", "up"):
        w.quant(f"{p}.{t}", d, m, e)
    w.quant(f"{p}.down", m, d, e)
    if a.shared:
        for t in ("s_gate", "s_up"):
            w.quant(f"{p}.{t}", d, m, a.shared)
        w.quant(f"{p}.s_down", m, d, a.shared)
    w.line(f'%lg{b} = mega.linear %{x}, @"{p}.router.weight"'
           f" : tensor<{d}xbf16> -> tensor<{e}xbf16>")
    w.line(f"%ids{b}, %w{b} = mega.router %lg{b} softmax renormalize(1.0e-9)"
           f' scale({a.scale}) probe("{b}.experts")')
    w.line(f"    : tensor<{e}xbf16> -> tensor<{k}xi32>, tensor<{k}xf32>")
    shared = (f' shared @"{p}.s_gate", @"{p}.s_up", @"{p}.s_down"'
              if a.shared else "")
    w.line(f'%e{b} = mega.experts(%{x}, %ids{b}, %w{b}) gate @"{p}.gate"'
           f' up @"{p}.up" down @"{p}.down"{shared}')
    w.line(f"    : tensor<{d}xbf16>, tensor<{k}xi32>, tensor<{k}xf32>"
           f" -> tensor<{d}xbf16> {{")
    w.line("^bb0(%g: f32, %u: f32):")
    w.body.append(SILU.format(x="g"))
    w.body.append("      %h = arith.mulf %silu, %u : f32")
    w.body.append("      mega.yield %h")
    w.line("}")
    return f"e{b}"


def block(args):
    w = Writer(args)
    d = args.hidden
    vec, x = f"tensor<{d}xbf16>", "x"
    for b, kind in enumerate(args.pattern):
        name = {"K": "gated delta rule", "M": "latent attention"}[kind]
        w.line("")
        w.line(f"// Layer {b}: {name}")
        for norm in ("attn_norm", "moe_norm"):
            w.dense(f"blocks.{b}.{norm}", d)
        w.line(f'%n{b} = mega.rms_norm %{x}, @"blocks.{b}.attn_norm"'
               f" eps({args.eps}) : {vec} -> {vec}")
        a = {"K": kda, "M": mla}[kind](w, b, f"n{b}")
        add(w, f"h{b}", x, a, vec)
        w.line("")
        w.line(f"// Layer {b}: mixture of experts")
        w.line(f'%m{b} = mega.rms_norm %h{b}, @"blocks.{b}.moe_norm"'
               f" eps({args.eps}) : {vec} -> {vec}")
        e = moe(w, b, f"m{b}")
        x_next = f"x{b}"
        add(w, x_next, f"h{b}", e, vec)
        x = x_next
    if "M" in args.pattern:
        w.body.insert(0, "    %pos = mega.position")
    out = [f"// {args.comment}"] if args.comment else []
    out += w.weights + [""] + w.states + [""]
    out.append(f"mega.block @{args.name}(%x: {vec}) -> {vec} {{")
    out += w.body
    out += ["", f"    mega.return %{x} : {vec}", "}"]
    lines = "\n".join(out).split("\n")
    return "\n".join(line[2:] if line.startswith("    ") else line
                     for line in lines) + "\n"


def count(text):
    """An integer of 1 or more, in a sane range."""
    value = int(text)
    if not 1 <= value <= 1 << 24:
        raise argparse.ArgumentTypeError(f"is {value}, expected 1 to 2^24")
    return value


def number(text):
    """A finite positive float, as it was typed."""
    value = float(text)
    if not 0 < value < float("inf"):
        raise argparse.ArgumentTypeError(
            f"is '{text}', expected a finite number above 0")
    # MLIR's float literals have a point.
    if not re.fullmatch(r"[0-9]+\.[0-9]*([eE][-+]?[0-9]+)?", text):
        raise argparse.ArgumentTypeError(
            f"is '{text}', expected it written like 1.0e-6")
    return text


def problem(a):
    """What is wrong with sizes that are right one by one, or None."""
    if not a.pattern or set(a.pattern) - set("KM"):
        return f"pattern has '{a.pattern}', expected letters K and M"
    if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", a.name):
        return f"name is '{a.name}', expected letters, digits and _"
    if "\n" in a.comment:
        return "comment has several lines, expected one"
    if a.group not in (32, 64) and a.group % 128 != 0:
        return f"group is {a.group}, expected 32, 64 or a multiple of 128"
    if a.top_k > a.experts:
        return f"top-k is {a.top_k}, expected at most the {a.experts} experts"
    inputs = {"hidden": a.hidden, "inter": a.inter}
    if "K" in a.pattern:
        if a.taps < 2:
            return f"taps is {a.taps}, expected 2 or more"
        inputs["kda-heads * kda-dim"] = a.kda_heads * a.kda_dim
    if "M" in a.pattern:
        if a.qk_rope % 2 != 0:
            return f"qk-rope is {a.qk_rope}, expected an even number"
        inputs["kv-lora"] = a.kv_lora
        inputs["mla-heads * v-head"] = a.mla_heads * a.v_head
    for name, value in inputs.items():
        if value % a.group != 0:
            return f"{name} is {value}, expected a multiple of group {a.group}"
    return None


def main():
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    for flag, default in (("hidden", 2304), ("kda-heads", 32),
                          ("kda-dim", 128), ("taps", 4), ("mla-heads", 32),
                          ("kv-lora", 512), ("qk-nope", 128), ("qk-rope", 64),
                          ("v-head", 128), ("experts", 64), ("top-k", 8),
                          ("inter", 1024), ("group", 128)):
        p.add_argument(f"--{flag}", type=count, default=default)
    p.add_argument("--shared", type=lambda text: int(text) and count(text),
                   default=1, help="shared experts; 0 for none")
    p.add_argument("--pattern", default="KKKM", help="layers, K or M each")
    p.add_argument("--name", default="motif")
    p.add_argument("--comment", default="")
    p.add_argument("--scale", type=number, default="2.446")
    p.add_argument("--theta", type=number, default="10000.0")
    p.add_argument("--eps", type=number, default="1.0e-6")
    args = p.parse_args()
    if wrong := problem(args):
        p.error(wrong)
    print(block(args), end="")


if __name__ == "__main__":
    main()
