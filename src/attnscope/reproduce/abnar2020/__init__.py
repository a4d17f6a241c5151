"""Abnar & Zuidema (2020): rollout and flow held against ablation and gradients, on models trained here."""

from .experiment import reproduce_abnar2020 as reproduce_abnar2020
