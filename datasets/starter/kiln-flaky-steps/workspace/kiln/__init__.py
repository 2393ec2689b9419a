"""Kiln runs plans of steps."""

from kiln.model import Plan, Result, SpecError, Step, StepError, StepResult
from kiln.report import render
from kiln.runner import run
from kiln.spec import parse

__all__ = ["Plan", "Result", "SpecError", "Step", "StepError", "StepResult", "parse", "render", "run"]
