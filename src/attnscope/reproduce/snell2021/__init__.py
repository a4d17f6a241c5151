"""Snell et al. (2021): how attention is learned, from word knowledge to where to look."""

from .experiment import reproduce_snell2021 as reproduce_snell2021
