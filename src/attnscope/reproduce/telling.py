"""How judged claims stand in a report: all at one glance, and each with its rule."""

from collections.abc import Sequence

from .claims import Claim, count
from .document import Block, Code, Heading, Paragraph, Strong, Table, Words


def claims_blocks(claims: Sequence[Claim]) -> list[Block]:
    """The claims at one glance."""
    rows: list[Sequence[Words]] = [
        [said(claim), claim.paper, claim.here, [Strong(claim.verdict)] if claim.holds else claim.verdict]
        for claim in claims
    ]
    return [
        Heading("What holds"),
        Paragraph(f"{count(claims)}. The rule of each stands below; a claim is about this model and these texts."),
        Table(["claim", "paper", "here", "verdict"], rows),
    ]


def said(claim: Claim) -> Words:
    """A claim as a sentence, with the name by which files know it."""
    return [f"{claim.claimed} ", Code(claim.id)]


def details_blocks(claims: Sequence[Claim]) -> list[Block]:
    """Every claim with its rule and what is to be said of it."""
    blocks: list[Block] = []
    for claim in claims:
        blocks.append(Heading(f"{claim.id}: {claim.verdict}", 2))
        blocks.append(Paragraph(claim.statement))
        blocks.append(Paragraph(["Paper: ", claim.paper, ". Here: ", Strong(claim.here), f". {claim.note}"]))
    return blocks
