"""A release in the words of the OpenDP deployments registry: a draft of the entry its holder may hand in there."""

from typing import Any

from noisewise.artifacts.manifest import Manifest

PERSON = "to be written by a person"


def registry_entry(manifest: Manifest) -> dict[str, Any]:
    """The registry's fields as far as a release knows them; what only a person knows says so."""
    privacy = manifest.privacy
    acts = "; ".join(f"{step.name}: {step.mechanism}, rho {step.rho:.6g}, {step.share:.0%}" for step in privacy.steps)
    return {
        "status": "Draft",
        "deployment": {
            "product": {
                "name": manifest.table,
                "data_curators": [PERSON],
                "intended_use": PERSON,
                "data_product_type": "Synthetic data",
                "data_product_region": PERSON,
                "description": PERSON,
                "publication_date": PERSON,
            },
            "dp_flavor": {
                "name": "Approximate DP",
                "input_metric": "Change-one distance: tables with the same number of rows that differ in one unit",
                "bound_on_input_distance": 1,
                "output_measure": "Hockey-stick divergence (the whole privacy profile follows from the noise)",
                "bound_on_output_distance": f"epsilon {privacy.epsilon:.6g}, delta {privacy.delta:.6g}",
                "data_domain": f"{manifest.rows} rows under the schema {manifest.schema_hash[:12]}",
                "unprotected_quantities": "; ".join(privacy.unprotected_quantities),
            },
            "privacy_loss": {
                "privacy_unit": privacy.unit,
                "privacy_unit_description": f"Replaced as a whole; at most {privacy.max_rows_per_unit} rows.",
                "privacy_parameters": {"epsilon": privacy.epsilon, "delta": privacy.delta, "rho": privacy.rho},
                "privacy_parameters_description": acts,
            },
            "model": {
                "model_name": "Central",
                "release_type": "One release",
                "data_source_type": "Static",
                "access_type": "Non-interactive",
            },
            "accounting": {
                "post_processing": "A Bayesian model is fitted to the noisy counts, and datasets are drawn from it.",
                "composition": privacy.accountant,
            },
            "implementation": {
                "pre_processing_eda_hyperparameter_tuning": PERSON,
                "mechanisms": "; ".join(sorted({step.mechanism for step in privacy.steps})),
                "justification": PERSON,
            },
            "resources": {"sources": PERSON, "registry_authors": [PERSON]},
        },
    }
