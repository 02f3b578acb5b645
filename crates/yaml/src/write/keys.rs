//! The natural order of keys: numbers in them compare as numbers.

use std::cmp::Ordering;

use crate::Dialect;

/// Sorts indices by their keys. The order is not transitive for some odd keys (`0a`, `00`), which
/// `slice::sort_by` may answer with a panic; a plain merge sort does not mind.
pub(super) fn sort_by_key(items: &mut Vec<usize>, compare: &dyn Fn(usize, usize) -> Ordering) {
    if items.len() < 2 {
        return;
    }
    let mut right = items.split_off(items.len() / 2);
    sort_by_key(items, compare);
    sort_by_key(&mut right, compare);
    let left = std::mem::replace(items, Vec::with_capacity(items.len() + right.len()));
    let (mut left, mut right) = (left.into_iter().peekable(), right.into_iter().peekable());
    loop {
        match (left.peek(), right.peek()) {
            (Some(&a), Some(&b)) if compare(b, a) == Ordering::Less => items.extend(right.next()),
            (Some(_), _) => items.extend(left.next()),
            (None, Some(_)) => items.extend(right.next()),
            (None, None) => return,
        }
    }
}

/// Compares two keys as Go's library does. The two versions differ where a letter meets another
/// character right behind a digit.
pub(super) fn compare(a: &str, b: &str, dialect: Dialect) -> Ordering {
    let shared = a.bytes().zip(b.bytes()).take_while(|(x, y)| x == y).count();
    let shared = (0..=shared)
        .rev()
        .find(|&at| a.is_char_boundary(at) && b.is_char_boundary(at))
        .unwrap_or(0);
    let (before, rest_a) = a.split_at(shared);
    let rest_b = b.get(shared..).unwrap_or_default();
    let (Some(first_a), Some(first_b)) = (rest_a.chars().next(), rest_b.chars().next()) else {
        return rest_a.len().cmp(&rest_b.len());
    };
    let after_digit = before.chars().next_back().is_some_and(|c| c.is_ascii_digit());
    match (first_a.is_alphabetic(), first_b.is_alphabetic()) {
        (true, true) => return first_a.cmp(&first_b),
        (a_letter, b_letter) if a_letter || b_letter => {
            let a_first = if dialect == Dialect::V3 && after_digit { a_letter } else { b_letter };
            return if a_first { Ordering::Less } else { Ordering::Greater };
        }
        _ => {}
    }
    let zeros_count = (first_a == '0' || first_b == '0')
        && before.bytes().rev().take_while(u8::is_ascii_digit).any(|digit| digit != b'0');
    let start = i64::from(zeros_count);
    let (number_a, digits_a) = leading_number(rest_a, start);
    let (number_b, digits_b) = leading_number(rest_b, start);
    number_a.cmp(&number_b).then(digits_a.cmp(&digits_b)).then(first_a.cmp(&first_b))
}

fn leading_number(text: &str, start: i64) -> (i64, usize) {
    let digits = text.bytes().take_while(u8::is_ascii_digit);
    digits.fold((start, 0), |(number, count), digit| {
        (number.wrapping_mul(10).wrapping_add(i64::from(digit - b'0')), count + 1)
    })
}
