//! JSON Schemas of the documents that commands print.

/// The documents and their schemas; answers come first.
pub(crate) const SCHEMAS: [(&str, &str); 6] = [
    ("answer", include_str!("../schema/answer.json")),
    ("plan", include_str!("../schema/plan.json")),
    ("inspect", include_str!("../schema/inspect.json")),
    ("dry-run", include_str!("../schema/dry-run.json")),
    ("audit", include_str!("../schema/audit.json")),
    ("demo", include_str!("../schema/demo.json")),
];
