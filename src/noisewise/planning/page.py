"""A plan as one self-contained page: no script, no network, everything escaped."""

from importlib.resources import files

from noisewise.planning import sentences, tables
from noisewise.planning.curve import curve_picture
from noisewise.planning.plan import Plan


def page(plan: Plan) -> str:
    """The whole plan as HTML."""
    from jinja2 import Environment, StrictUndefined

    environment = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True)
    template = files("noisewise.planning").joinpath("page.html").read_text("utf-8")
    return environment.from_string(template).render(
        table=plan.table,
        heading=sentences.heading(plan),
        promise=sentences.promise(plan),
        acts=sentences.acts(plan),
        model=sentences.model(plan),
        supported=sentences.supported(plan),
        assumed=sentences.assumed(plan),
        measured=tables.measured(plan),
        budgets=tables.budgets(plan),
        expectations=tables.expectations(plan),
        curve=curve_picture(plan),
        warnings=plan.warnings,
        schema_hash=plan.schema_hash,
    )
