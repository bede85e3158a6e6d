//! The native part of the Python package `dpsw`. What people use, with its documentation, lies in `python/dpsw`.

mod audit;
mod column;
mod fault;
mod plan;
mod reading;
mod sealer;
mod sketch;
mod spending;
mod times;
mod view;
mod worker;

#[pyo3::pymodule]
mod _dpsw {
    #[pymodule_export]
    use crate::audit::audit;
    #[pymodule_export]
    use crate::plan::{Plan, length, look, millis, plan, size, survey};
    #[pymodule_export]
    use crate::sealer::Sealer;
    #[pymodule_export]
    use crate::sketch::Sketch;
    #[pymodule_export]
    use crate::spending::spend;
    #[pymodule_export]
    use crate::view::View;
    #[pymodule_export]
    use crate::worker::{Counting, Partial, Worker};
}
