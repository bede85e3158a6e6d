//! How questions are answered: from what is published, and long ones on threads of their own.

use std::sync::Arc;
use std::time::Instant;

use axum::extract::{Request, State};
use axum::middleware::Next;
use axum::response::Response;
use dpsw::WindowView;

use crate::auth::Role;
use crate::engine::publish::Published;
use crate::http::app::App;
use crate::http::caller::Asker;
use crate::http::params::Scope;
use crate::http::problem::Problem;

/// Counts how long questions take.
pub(crate) async fn timed(State(app): State<App>, request: Request, next: Next) -> Response {
    let started = Instant::now();
    let response = next.run(request).await;
    app.metrics.add_question(started.elapsed());
    response
}

/// The length of the work on a question.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Effort {
    /// Less than handing it to another thread, if the window is worked out.
    Short,
    /// Perhaps long.
    Long,
}

impl Effort {
    /// Of an answer with so many rows.
    pub(crate) fn of(rows: usize, trends: bool) -> Self {
        if trends || SHORT_ROWS < rows { Self::Long } else { Self::Short }
    }
}

/// So many rows take a few dozen microseconds.
const SHORT_ROWS: usize = 100;

impl Asker {
    /// Answers a question about a stream.
    pub(crate) async fn ask<T: Send + 'static>(
        &self,
        stream: &str,
        scope: Scope,
        effort: Effort,
        question: impl FnOnce(&WindowView) -> Result<T, Problem> + Send + 'static,
    ) -> Result<T, Problem> {
        self.may_stream(Role::Query, stream)?;
        let published = self.app.engine.view(stream)?;
        self.app.answer(published, scope, effort, question).await
    }
}

impl App {
    /// Answers a question about what is published, on a thread of its own if it may take long.
    pub(crate) async fn answer<T: Send + 'static>(
        &self,
        published: Arc<Published>,
        scope: Scope,
        effort: Effort,
        question: impl FnOnce(&WindowView) -> Result<T, Problem> + Send + 'static,
    ) -> Result<T, Problem> {
        if scope.is_whole() && effort == Effort::Short {
            return question(&published.view);
        }
        self.workers.questions.run(move || question(&scope.of(&published.view)?)).await
    }
}
