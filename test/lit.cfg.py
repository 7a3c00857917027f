# -*- Python -*-
# SPDX-License-Identifier: Apache-2.0
# What is a test, which tools it may call, and which features this build has.

import os
import shutil

import lit.formats
from lit.llvm import llvm_config
from lit.llvm.subst import ToolSubst

config.name = "megalith"
config.test_format = lit.formats.ShTest(not llvm_config.use_lit_shell)
config.suffixes = [".mlir", ".test"]
config.excludes = ["golden", "gpu", "lib", "fuzz", "CMakeLists.txt"]

config.test_source_root = os.path.dirname(__file__)
config.test_exec_root = os.path.join(config.megalith_obj_root, "test")

llvm_config.use_default_substitutions()
llvm_config.with_environment("PATH", config.llvm_tools_dir, append_path=True)

config.substitutions += [
    ("%src_root", config.megalith_src_root),
    ("%obj_root", config.megalith_obj_root),
]

# A tool that this build does not have is an error where a test calls it.
llvm_config.add_tool_substitutions(
    [
        ToolSubst(name, unresolved="ignore")
        for name in (
            "megalith-opt",
            "megalith-bench",
            "megalith-translate",
            "megalith-explain",
            "megalith-explore",
            "megalith-run",
            "megalith-audit",
            "megalithc",
        )
    ],
    [config.megalith_tools_dir, config.llvm_tools_dir],
)

# `nvrtc`: CUDA text can be compiled to a cubin. It needs no GPU.
if os.path.exists(config.megalith_nvrtc_library):
    config.available_features.add("nvrtc")

# `nvcc`: a CUDA toolkit's own compiler, as %nvcc. Nothing but a test needs it.
cuda_homes = [os.environ.get("CUDA_HOME"), "/usr/local/cuda"]
cuda_bins = [os.path.join(home, "bin") for home in cuda_homes if home]
nvcc = shutil.which("nvcc", path=os.pathsep.join(cuda_bins)) or shutil.which("nvcc")
if nvcc:
    config.available_features.add("nvcc")
    config.substitutions.append(("%nvcc", nvcc))
