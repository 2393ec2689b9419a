from .errors import OverlapError, ShiftError
from .pay import WeekPay, weekly_pay

__all__ = ["OverlapError", "ShiftError", "WeekPay", "weekly_pay"]
