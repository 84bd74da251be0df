package cost

import (
	"fmt"
	"math"
	"math/big"
	"strconv"
	"strings"
)

// Amount is an exact number of dollars, in units of 10^-24 dollars. Sums of float64 drift: 0.1 + 0.2 is not 0.3. An Amount is the
// decimal number that a record has in its JSON, so sums are those that a person gets who adds up the records. Digits beyond the
// 24th after the point are rounded off. The zero Amount is no dollars. Amounts are immutable.
type Amount struct{ units *big.Int }

const scale = 24

var unitsPerDollar = new(big.Int).Exp(big.NewInt(10), big.NewInt(scale), nil)

// AmountOf returns the Amount of the shortest decimal number that is dollars as a float64. It returns an error for a negative
// or infinite number, or NaN.
func AmountOf(dollars float64) (Amount, error) {
	if dollars < 0 || math.IsNaN(dollars) || math.IsInf(dollars, 0) {
		return Amount{}, fmt.Errorf("cost: %v is no amount", dollars)
	}
	mantissa, exponent, _ := strings.Cut(strconv.FormatFloat(dollars, 'e', -1, 64), "e")
	whole, fraction, _ := strings.Cut(mantissa, ".")
	digits, err := strconv.ParseInt(whole+fraction, 10, 64) // at most 17 digits
	if err != nil {
		return Amount{}, fmt.Errorf("cost: %w", err)
	}
	shift, err := strconv.Atoi(exponent)
	if err != nil {
		return Amount{}, fmt.Errorf("cost: %w", err)
	}
	shift += scale - len(fraction)
	units := big.NewInt(digits)
	power := new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(max(shift, -shift))), nil)
	if shift >= 0 {
		return Amount{units.Mul(units, power)}, nil
	}
	half := new(big.Int).Rsh(power, 1)
	return Amount{units.Div(units.Add(units, half), power)}, nil
}

// Add returns the sum of two amounts.
func (a Amount) Add(b Amount) Amount { return Amount{new(big.Int).Add(a.value(), b.value())} }

// Dollars returns the float64 that is nearest to the amount.
func (a Amount) Dollars() float64 {
	f, _ := new(big.Rat).SetFrac(a.value(), unitsPerDollar).Float64()
	return f
}

func (a Amount) value() *big.Int {
	if a.units == nil {
		return new(big.Int)
	}
	return a.units
}

// bytes and amountFrom convert an amount to and from its bytes in a row, the most significant byte first.
func (a Amount) bytes() []byte { return a.value().Bytes() }

func amountFrom(raw []byte) Amount { return Amount{new(big.Int).SetBytes(raw)} }
