//! Room for what is secret: a vector that grows by itself leaves what it held behind in memory that is free.

use zeroize::Zeroize;

/// The fewest elements that room is made for.
const ROOM_MIN: usize = 8;

/// Makes room for so many more elements, and wipes where the others were if they had to move.
pub(crate) fn reserve<T: Zeroize>(held: &mut Vec<T>, more: usize) {
    let needed = held.len().saturating_add(more);
    if needed <= held.capacity() {
        return;
    }
    let mut larger = Vec::with_capacity(needed.max(2 * held.capacity()).max(ROOM_MIN));
    larger.append(held);
    std::mem::swap(held, &mut larger);
    // All of its capacity, though nothing is in it any more.
    larger.zeroize();
}

/// Adds one element.
pub(crate) fn push<T: Zeroize>(held: &mut Vec<T>, element: T) {
    reserve(held, 1);
    held.push(element);
}

/// Adds elements.
pub(crate) fn extend<T: Zeroize + Copy>(held: &mut Vec<T>, elements: &[T]) {
    reserve(held, elements.len());
    held.extend_from_slice(elements);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_moves_to_more_room_stays_as_it_was_and_moves_seldom() {
        let (mut held, mut moves) = (Vec::new(), 0);
        for element in 0..1000_u64 {
            let before = held.capacity();
            push(&mut held, element);
            moves += u32::from(held.capacity() != before);
        }
        assert!(held.iter().copied().eq(0..1000) && moves <= 8, "{moves}");
        extend(&mut held, &[7; 5000]);
        assert_eq!((held.len(), held[999], held[1000], held[5999]), (6000, 999, 7, 7));
    }
}
