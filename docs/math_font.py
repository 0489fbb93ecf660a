"""A font for formulas that every browser finds: STIX as matplotlib brings it, plus the table of
spacings (MATH) that tells a browser how far subscripts drop and where fraction bars lie."""

from __future__ import annotations

from pathlib import Path

import matplotlib
from fontTools.ttLib import TTFont, newTable
from fontTools.ttLib.tables import otTables

# In thousandths of an em: the values of STIX Two Math, rounded.
CONSTANTS = {
    "SubscriptShiftDown": 210, "SubscriptTopMax": 368, "SubscriptBaselineDropMin": 160,
    "SuperscriptShiftUp": 360, "SuperscriptShiftUpCramped": 252, "SuperscriptBottomMin": 120,
    "SuperscriptBaselineDropMax": 230, "SubSuperscriptGapMin": 150,
    "SuperscriptBottomMaxWithSubscript": 380, "SpaceAfterScript": 40, "UpperLimitGapMin": 135,
    "UpperLimitBaselineRiseMin": 300, "LowerLimitGapMin": 135, "LowerLimitBaselineDropMin": 670,
    "AxisHeight": 250, "AccentBaseHeight": 450, "FractionNumeratorShiftUp": 480,
    "FractionNumeratorDisplayStyleShiftUp": 640, "FractionDenominatorShiftDown": 480,
    "FractionDenominatorDisplayStyleShiftDown": 640, "FractionNumeratorGapMin": 68,
    "FractionNumDisplayStyleGapMin": 150, "FractionRuleThickness": 60,
    "FractionDenominatorGapMin": 68, "FractionDenomDisplayStyleGapMin": 150,
    "OverbarVerticalGap": 150, "OverbarRuleThickness": 60, "OverbarExtraAscender": 60,
    "RadicalVerticalGap": 80, "RadicalDisplayStyleVerticalGap": 160, "RadicalRuleThickness": 60,
    "RadicalExtraAscender": 60, "RadicalKernBeforeDegree": 65, "RadicalKernAfterDegree": -335,
    "StackTopShiftUp": 470, "StackTopDisplayStyleShiftUp": 780, "StackBottomShiftDown": 385,
    "StackBottomDisplayStyleShiftDown": 690, "StackGapMin": 150, "StackDisplayStyleGapMin": 300,
    "StretchStackTopShiftUp": 800, "StretchStackBottomShiftDown": 590,
    "StretchStackGapAboveMin": 68, "StretchStackGapBelowMin": 68, "MathLeading": 150,
    "FlattenedAccentBaseHeight": 662, "SkewedFractionHorizontalGap": 350,
    "SkewedFractionVerticalGap": 68, "UnderbarVerticalGap": 175, "UnderbarRuleThickness": 68,
    "UnderbarExtraDescender": 68,
}  # fmt: skip


def write_font(path: Path) -> None:
    """STIXGeneral with a MATH table that has constants only."""
    if path.exists():
        return
    source = Path(matplotlib.get_data_path()) / "fonts" / "ttf" / "STIXGeneral.ttf"
    font = TTFont(source)
    scale = font["head"].unitsPerEm / 1000
    constants = otTables.MathConstants()
    constants.ScriptPercentScaleDown, constants.ScriptScriptPercentScaleDown = 72, 58
    constants.DelimitedSubFormulaMinHeight = round(1325 * scale)
    constants.DisplayOperatorMinHeight = round(1300 * scale)
    constants.RadicalDegreeBottomRaisePercent = 65
    for name, value in CONSTANTS.items():
        record = otTables.MathValueRecord()
        record.Value = round(value * scale)
        setattr(constants, name, record)
    table = otTables.MATH()
    table.Version, table.MathConstants = 0x00010000, constants
    table.MathGlyphInfo = table.MathVariants = None
    font["MATH"] = newTable("MATH")
    font["MATH"].table = table
    path.parent.mkdir(parents=True, exist_ok=True)
    font.save(path)
