"""Sun & Lu (2020): polarity and attention scores, and why attention is sometimes readable."""

from .experiment import reproduce_sun2020 as reproduce_sun2020
