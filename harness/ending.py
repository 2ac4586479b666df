"""Why a step has no number, from how its child ended and what it left: the climb says it, the verifier says it again. Pure."""

from __future__ import annotations

from harness.records import TIER_NAMES, Exit, Request


def why_blocked(request: Request, ended: Exit, said: str | None, measured: bool) -> str:
    """One sentence; empty when the child ended well and left measurements. ``said`` is the reason of ``blocked.json``."""
    name = f"{request.tier} {TIER_NAMES[request.tier]} of {of(request)} on {request.target.name}"
    if ended.timed_out:
        return f"{name} was ended at its time limit after {ended.seconds:.1f} s"
    if ended.over_memory_bytes is not None:
        limit = request.planned.memory_limit_bytes
        return (
            f"{name} was ended at its memory limit of {limit:,} bytes after {ended.seconds:.1f} s, with"
            f" {ended.over_memory_bytes:,} resident; set tiers.{request.tier}.memory_limit_bytes higher if the machine has them"
        )
    if said is not None:
        return said
    if ended.signal is not None:
        return f"{name} was killed by {ended.signal} after {ended.seconds:.1f} s; see stderr.log"
    if ended.code != 0 or not measured:
        return f"{name} ended with exit code {ended.code} and no measurements; see stderr.log"
    return ""


def of(request: Request) -> str:
    """The candidate as a message names it: its id, with its revision where it has one."""
    model, revision = request.candidate.model, request.candidate.revision
    return f"{model} at revision {revision}" if revision is not None else model
