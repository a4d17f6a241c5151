"""Wu, Nguyen & Ong (2020): layer-wise attention tracing, and what human raters say of words."""

from .experiment import reproduce_wu2020 as reproduce_wu2020
