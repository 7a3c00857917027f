# SPDX-License-Identifier: Apache-2.0
"""Writes a block of two layers that differ in one number.

    two_layers.py {eps,constant,unit_offset,theta} FIRST SECOND
"""

import sys

what, values = sys.argv[1], sys.argv[2:]
T = "tensor<64xbf16>"
print("// SPDX-License-Identifier: Apache-2.0")
for layer in range(2):
    print(f"mega.weight @norm.{layer} : {T}".replace(f"@norm.{layer}",
                                                     f'@"{layer}.norm"'))
    print(f'mega.weight @"{layer}.w" : !mega.quant<64x64xi4, group = 32,'
          " scale = bf16, zero = bf16>")
print(f"mega.block @two(%x: {T}) -> {T} {{\n  %pos = mega.position")
x = "x"
for layer, value in enumerate(values):
    fact = {"eps": "1.0", "constant": "2.0", "unit_offset": "",
            "theta": "10.0", what: value}
    print(f'  %n{layer} = mega.rms_norm %{x}, @"{layer}.norm"'
          f' eps({fact["eps"]}) {fact["unit_offset"]} : {T} -> {T}\n'
          f'  %r{layer} = mega.rope %n{layer}, %pos half range(0, 64)'
          f' theta({fact["theta"]}) : {T} -> {T}\n'
          f"  %m{layer} = mega.map(%a = %r{layer}) : ({T}) -> {T} {{\n"
          f'    %c = arith.constant {fact["constant"]} : f32\n'
          f"    %p = arith.mulf %a, %c : f32\n    mega.yield %p\n  }}\n"
          f'  %y{layer} = mega.linear %m{layer}, @"{layer}.w" : {T} -> {T}')
    x = f"y{layer}"
print(f"  mega.return %{x} : {T}\n}}")
