"""`noisewise verify` and `noisewise sign`: what a stranger can check about a release, and what a holder can add."""

import json
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table
from rich.text import Text

from noisewise.artifacts import Manifest, Release, damage, read_release
from noisewise.cli.app import Debug, ReleaseFolder, command, existing, say, screen
from noisewise.errors import ReleaseError

FALSE_ALARMS = 0.05


@command("verify")
def verify_command(
    release: ReleaseFolder,
    allowed_signers: Annotated[
        Path | None, typer.Option(help="Names and public keys, as ssh-keygen reads them: asks for a signature.")
    ] = None,
    registry: Annotated[
        bool, typer.Option("--registry", help="Print a draft of an entry for the OpenDP deployments registry instead.")
    ] = False,
    debug: Debug = False,
) -> None:
    """Check that a release is complete and unchanged, derive its promise again, and say what it is.

    ε, δ and ρ are computed from the noise alone, hashes from the files, sums from the counts. What does not add up is
    listed, and ends the command with exit code 7.
    """
    from noisewise.artifacts.promise import release_gaps
    from noisewise.artifacts.registry import registry_entry
    from noisewise.artifacts.signature import signature

    target = read_release(release)
    findings = [*damage(target), *release_gaps(target)]
    if findings:
        raise ReleaseError("This release does not add up:\n" + "\n".join(f"  {finding}" for finding in findings))
    signed = signature(target.folder, allowed_signers)
    manifest = target.manifest()
    if registry:
        say(json.dumps(registry_entry(manifest), indent=1, ensure_ascii=False))
        return
    screen.print(_promise(manifest, target.schema().origin))
    screen.print(_noise(manifest))
    say("\nAll of this adds up:")
    say(f"  {len(manifest.files)} files are as they were written (SHA-256).")
    say(f"  ε, δ and ρ follow from the noise: {_derived(manifest)}.")
    say(f"  {len(manifest.marginals)} tables have the schema's shape; their sums fit {manifest.rows:,} rows.")
    if signed is None:
        say("  Nobody signed it: whoever gave it to you could have changed it and every hash with it.")
    elif signed.trusted:
        say(f"  Signed by {signed.by}, who is in {allowed_signers}.")
    else:
        say(f"  Signed with the key {signed.by}. Whose it is, only --allowed-signers can tell.")


@command("sign")
def sign_command(
    release: ReleaseFolder,
    key: Annotated[Path, typer.Option(help="An SSH key; a public one if an agent holds the private.")],
    debug: Debug = False,
) -> None:
    """Sign a release with an SSH key, as its last step: every stage after it makes the signature void.

    The signature lies beside the manifest, as manifest.json.sig. The manifest holds the hashes of all other files.
    """
    from noisewise.artifacts.promise import release_gaps
    from noisewise.artifacts.signature import sign

    target: Release = existing(release)
    findings = [*damage(target), *release_gaps(target)]
    if findings:
        raise ReleaseError("Nobody should sign this:\n" + "\n".join(f"  {finding}" for finding in findings))
    say(f"Signed: {sign(release, key)}\nCheck:  noisewise verify {release} --allowed-signers FILE")


def _promise(manifest: Manifest, origin: str) -> Table:
    from noisewise.artifacts.promise import best_guess
    from noisewise.reporting.headline import promise

    privacy = manifest.privacy
    best = best_guess(privacy.epsilon, privacy.delta, FALSE_ALARMS)
    table = Table(show_header=False, box=None, padding=(0, 2, 0, 0))
    table.add_column(style="bold", no_wrap=True)
    table.add_column(overflow="fold")
    rows = {
        "Who is protected": f"Everybody in the table {manifest.table!r}. The unit is {privacy.unit}"
        + (f", at most {privacy.max_rows_per_unit} rows of it." if privacy.max_rows_per_unit > 1 else "."),
        "From what": promise(manifest),
        "In other words": "Somebody tries to tell whether your data were used, or another's in their place, and may "
        f"raise {FALSE_ALARMS:.0%} false alarms. They notice you in at most {best:.1%} of cases, whatever else they "
        f"know; guessing blindly, in {FALSE_ALARMS:.0%}.",
        "Not protected": f"{', '.join(privacy.unprotected_quantities)}: they are public. Nor are facts about the "
        "population, or losses from other releases about the same people, which add up.",
        "Schema": f"{origin}, and taken for public knowledge: SHA-256 {manifest.schema_hash[:16]}…",
        "Posterior": manifest.posterior.verdict.summary if manifest.posterior else "There is none yet.",
    }
    for name, text in rows.items():
        table.add_row(Text(name), Text(text))
    return table


def _noise(manifest: Manifest) -> Table:
    table = Table(title="\nWhat was asked of the table", title_justify="left")
    for column in ("act", "mechanism", "share", "ρ", "asked"):
        table.add_column(column, justify="left")
    for step in manifest.privacy.steps:
        noise = sorted(set(step.stddevs))
        span = (
            f"noise {noise[0]:.4g}" if len(noise) == 1 else f"noise {noise[0]:.4g} to {noise[-1]:.4g}" if noise else ""
        )
        tables = f"{len(step.stddevs)} tables, {span}" if step.stddevs else ""
        choices = f"{len(step.rounds)} choices, ε {step.rounds[0]:.4g} each" if step.rounds else ""
        asked = "; ".join(filter(None, [tables, choices]))
        cells = (step.name, step.mechanism, f"{step.share:.0%}", f"{step.rho:.4g}", asked)
        table.add_row(*(Text(cell) for cell in cells))
    return table


def _derived(manifest: Manifest) -> str:
    from noisewise.privacy.statement import loss_of

    loss = loss_of(manifest.privacy)
    return f"ε = {loss.epsilon(manifest.privacy.delta):.6g} at δ = {manifest.privacy.delta:.3g}, ρ = {loss.rho:.6g}"
