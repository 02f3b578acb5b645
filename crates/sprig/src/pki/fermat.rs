//! The test that nearly every number fails that is looked at for a prime: most of the time a key takes
//! goes by here.

use crypto_bigint::{Limb, NonZero, Uint};

/// Fermat's test to base two: the quickest that finds nearly every number composite that is, since
/// multiplying by two is no multiplication. What passes has to be looked at properly.
///
/// The numbers are Montgomery's, as those of `crypto_bigint::modular`, whose squares take half as long
/// again since they are made as any product.
pub(super) fn may_be_prime<const LIMBS: usize>(number: &Uint<LIMBS>) -> bool {
    let Some(modulus) = NonZero::new(*number).into_option() else { return false };
    let one = Uint::<LIMBS>::MAX.rem_vartime(&modulus).wrapping_add(&Uint::ONE);
    let inverse = negative_inverse(number.as_limbs()[0]);
    let exponent = number.wrapping_sub(&Uint::ONE);
    let mut power = one;
    for bit in (0..exponent.bits_vartime()).rev() {
        let (low, high) = power.widening_square();
        power = reduced(&low, &high, number, inverse);
        if exponent.bit_vartime(bit) {
            let (double, over) = power.carrying_add(&power, Limb::ZERO);
            power = below(double, over, number);
        }
    }
    power == one
}

/// What times an odd number gives -1, as limbs count. Each round doubles the bits that are right.
fn negative_inverse(odd: Limb) -> Limb {
    let two = Limb::from_u8(2);
    let round =
        |inverse: Limb, _| inverse.wrapping_mul(two.wrapping_sub(odd.wrapping_mul(inverse)));
    (0..Limb::BITS.ilog2()).fold(Limb::ONE, round).wrapping_neg()
}

/// Montgomery's reduction: a number of two halves, less than the modulus times 2^BITS, over 2^BITS.
fn reduced<const LIMBS: usize>(
    low: &Uint<LIMBS>,
    high: &Uint<LIMBS>,
    modulus: &Uint<LIMBS>,
    inverse: Limb,
) -> Uint<LIMBS> {
    let modulus_limbs = modulus.as_limbs();
    let mut limbs = low.to_limbs();
    let mut over = Limb::ZERO;
    for high in high.as_limbs() {
        let times = limbs[0].wrapping_mul(inverse);
        let (_, mut carry) = times.carrying_mul_add(modulus_limbs[0], limbs[0], Limb::ZERO);
        for at in 1..LIMBS {
            let next = times.carrying_mul_add(modulus_limbs[at], limbs[at], carry);
            (limbs[at - 1], carry) = next;
        }
        (limbs[LIMBS - 1], over) = high.carrying_add(carry, over);
    }
    below(Uint::new(limbs), over, modulus)
}

/// A number of one bit more that is less than twice the modulus, modulo it.
fn below<const LIMBS: usize>(
    number: Uint<LIMBS>,
    over: Limb,
    modulus: &Uint<LIMBS>,
) -> Uint<LIMBS> {
    let (less, borrow) = number.borrowing_sub(modulus, Limb::ZERO);
    if over == Limb::ZERO && borrow != Limb::ZERO { number } else { less }
}

#[cfg(test)]
mod tests {
    use crypto_bigint::modular::{FixedMontyForm, FixedMontyParams};
    use crypto_bigint::{Odd, U256};

    use super::*;

    #[test]
    fn it_is_the_power_of_two_that_the_crate_makes() {
        let mut number = U256::from_u64(0x9e37_79b9_7f4a_7c15);
        let mut passed = 0;
        for round in 0..3000 {
            number = number.wrapping_mul(&number).wrapping_add(&U256::from_u32(round)) | U256::ONE;
            // Of all lengths, so that there are primes among them.
            let number = number.shr_vartime(round % 253) | U256::from_u8(5);
            let params = FixedMontyParams::new_vartime(Odd::new(number).unwrap());
            let two = FixedMontyForm::new(&U256::from_u8(2), &params);
            let is_one = two.pow(&number.wrapping_sub(&U256::ONE)).retrieve() == U256::ONE;
            assert_eq!(may_be_prime(&number), is_one, "{number}");
            passed += u32::from(is_one);
        }
        assert!(passed > 50, "{passed} passed");
    }
}
