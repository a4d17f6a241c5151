"""Vig & Belinkov (2019): what the heads of GPT-2 do over a corpus, and whether that holds for other models."""

from .experiment import reproduce_vig2019 as reproduce_vig2019
