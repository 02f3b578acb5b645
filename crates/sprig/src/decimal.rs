//! Exact decimal numbers, for the arithmetic of floats: `addf 0.1 0.2` is 0.3.

use num_bigint::BigInt;

/// Decimals that a quotient keeps.
const DIVISION_DIGITS: i64 = 16;

/// `digits * 10^exponent`
#[derive(Debug, Clone)]
pub(crate) struct Decimal {
    digits: BigInt,
    exponent: i64,
}

impl Decimal {
    /// The shortest decimal that stands for a float; none of infinity and NaN.
    pub fn from_float(number: f64) -> Option<Self> {
        if !number.is_finite() {
            return None;
        }
        let text = format!("{number:e}");
        let (mantissa, exponent) = text.split_once('e')?;
        let fraction = mantissa.split_once('.').map_or(0, |(_, digits)| digits.len());
        let exponent: i64 = exponent.parse().ok()?;
        let digits = mantissa.replace('.', "").parse().ok()?;
        Some(Self { digits, exponent: exponent - i64::try_from(fraction).ok()? })
    }

    /// The nearest float.
    pub fn to_float(&self) -> f64 {
        format!("{}e{}", self.digits, self.exponent).parse().unwrap_or(0.0)
    }

    /// How much there is to compute with, for the budget.
    pub fn size(&self) -> u64 {
        self.digits.bits() / 64 + 1
    }

    /// The digits for a smaller exponent.
    fn scaled(&self, exponent: i64) -> BigInt {
        let shift = u32::try_from((self.exponent - exponent).max(0)).unwrap_or(u32::MAX);
        &self.digits * BigInt::from(10).pow(shift)
    }

    fn combine(&self, other: &Self, operation: fn(BigInt, BigInt) -> BigInt) -> Self {
        let exponent = self.exponent.min(other.exponent);
        Self { digits: operation(self.scaled(exponent), other.scaled(exponent)), exponent }
    }

    pub fn add(&self, other: &Self) -> Self {
        self.combine(other, |a, b| a + b)
    }

    pub fn sub(&self, other: &Self) -> Self {
        self.combine(other, |a, b| a - b)
    }

    pub fn mul(self, other: Self) -> Self {
        Self { digits: self.digits * other.digits, exponent: self.exponent + other.exponent }
    }

    /// The quotient rounded to 16 decimals, halves away from zero; none by zero.
    pub fn div(self, other: Self) -> Option<Self> {
        let zero = BigInt::from(0);
        if other.digits == zero {
            return None;
        }
        // self / other * 10^16, as a fraction of two integers.
        let shift = self.exponent - other.exponent + DIVISION_DIGITS;
        let power = BigInt::from(10).pow(u32::try_from(shift.unsigned_abs()).unwrap_or(u32::MAX));
        let (over, under) = if shift >= 0 {
            (self.digits * power, other.digits)
        } else {
            (self.digits, other.digits * power)
        };
        let negative = (over < zero) != (under < zero);
        let (over, under) = (over.magnitude().clone(), under.magnitude().clone());
        let rounded = BigInt::from((over * 2_u8 + &under) / (under * 2_u8));
        Some(Self { digits: if negative { -rounded } else { rounded }, exponent: -DIVISION_DIGITS })
    }
}
