//! Counters with their noise, as a type: while a stream runs a sealed sketch is made of nothing else.

use crate::noise::generator::Generator;
use crate::noise::table::Table;

/// Counters of which each has a draw of its own. [`Table::noised`] alone makes them, so that a path which forgets the noise
/// does not compile.
pub(crate) struct Noised<'c>(&'c [i32]);

impl Table {
    /// Adds an independent draw to each counter. The generator is used up: no other range can share its draws.
    pub(crate) fn noised<'c>(&self, counters: &'c mut [i32], mut generator: Generator) -> Noised<'c> {
        planted!(let exact = fault::exact(counters));
        self.add_to(counters, &mut generator);
        planted!(tape::sealed(exact, counters, self.law(), &generator));
        Noised(counters)
    }
}

impl Noised<'_> {
    pub(crate) fn counters(&self) -> &[i32] {
        self.0
    }
}
