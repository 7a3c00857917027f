// SPDX-License-Identifier: Apache-2.0
#ifndef MEGA_ENUMS_TD
#define MEGA_ENUMS_TD

include "mlir/IR/EnumAttr.td"
include "MegaDialect.td"

class Mega_Enum<string name, string summary, list<I32EnumAttrCase> cases>
    : I32EnumAttr<name, summary, cases> {
  let cppNamespace = "::mega";
  let genSpecializedAttr = 0;
}

def Mega_DecayKindEnum : Mega_Enum<"DecayKind",
    "how a recurrence forgets before each update", [
  I32EnumAttrCase<"None", 0, "none">,
  I32EnumAttrCase<"Head", 1, "head">,
  I32EnumAttrCase<"Channel", 2, "channel">
]>;
def Mega_DecayKind : EnumAttr<Mega_Dialect, Mega_DecayKindEnum, "decay">;

def Mega_RopeKindEnum : Mega_Enum<"RopeKind",
    "which elements a rotary embedding pairs", [
  I32EnumAttrCase<"None", 0, "none">,
  I32EnumAttrCase<"Half", 1, "half">,
  I32EnumAttrCase<"Interleaved", 2, "interleaved">
]>;
def Mega_RopeKind : EnumAttr<Mega_Dialect, Mega_RopeKindEnum, "rope_kind">;

def Mega_ScoreKindEnum : Mega_Enum<"ScoreKind",
    "how a router turns logits into scores", [
  I32EnumAttrCase<"Softmax", 0, "softmax">,
  I32EnumAttrCase<"Sigmoid", 1, "sigmoid">
]>;
def Mega_ScoreKind : EnumAttr<Mega_Dialect, Mega_ScoreKindEnum, "score">;

#endif // MEGA_ENUMS_TD
