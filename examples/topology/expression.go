package main

import (
	"errors"
	"fmt"
	"math/big"
	"strings"
)

// An expression is sums of products of powers of numbers, in that order of binding, with parentheses and signs:
//
//	sum     = product { ("+" | "-") product }
//	product = sign { ("*" | "/" | "%") sign }
//	sign    = { "+" | "-" } power
//	power   = atom [ "^" sign ]
//	atom    = number | "(" sum ")"
//
// The arithmetic is exact: 0.1 + 0.2 is 0.3.

// The limits of an expression, which a language model writes.
const (
	maxExpression = 1000 // bytes
	maxDepth      = 100  // nested parentheses, signs and powers
	maxBits       = 4096 // of a numerator or denominator
	maxDigits     = 12   // after the point, of a result that has no end
)

var (
	errDivision = errors.New("division by zero")
	errTooLarge = errors.New("number too large")
	errDepth    = errors.New("expression nested too deep")
)

// evaluate returns the value of an expression as a JSON number.
func evaluate(expression string) (string, error) {
	if len(expression) > maxExpression {
		return "", fmt.Errorf("expression longer than %d bytes", maxExpression)
	}
	p := &parser{text: expression}
	value, err := p.sum()
	if err != nil {
		return "", err
	}
	if c := p.peek(); c != 0 {
		return "", fmt.Errorf("unexpected %q at %d", c, p.at)
	}
	return decimal(value), nil
}

// decimal writes a value in full where it has an end, else to maxDigits.
func decimal(v *big.Rat) string {
	digits, exact := v.FloatPrec()
	if !exact || digits > maxBits {
		digits = maxDigits
	}
	text := v.FloatString(digits)
	if strings.Contains(text, ".") {
		text = strings.TrimRight(strings.TrimRight(text, "0"), ".")
	}
	if text == "-0" {
		return "0"
	}
	return text
}

type parser struct {
	text  string
	at    int
	depth int
}

// peek skips blanks and returns the next byte, or 0 at the end.
func (p *parser) peek() byte {
	for p.at < len(p.text) && (p.text[p.at] == ' ' || p.text[p.at] == '\t') {
		p.at++
	}
	if p.at == len(p.text) {
		return 0
	}
	return p.text[p.at]
}

func (p *parser) sum() (*big.Rat, error) {
	left, err := p.product()
	for err == nil {
		op := p.peek()
		if op != '+' && op != '-' {
			return left, nil
		}
		p.at++
		var right *big.Rat
		if right, err = p.product(); err != nil {
			break
		}
		if op == '-' {
			right.Neg(right)
		}
		left, err = bounded(left.Add(left, right))
	}
	return nil, err
}

func (p *parser) product() (*big.Rat, error) {
	left, err := p.sign()
	for err == nil {
		op := p.peek()
		if op != '*' && op != '/' && op != '%' {
			return left, nil
		}
		p.at++
		var right *big.Rat
		if right, err = p.sign(); err != nil {
			break
		}
		switch {
		case op == '*':
			left, err = bounded(left.Mul(left, right))
		case right.Sign() == 0:
			err = errDivision
		case op == '/':
			left, err = bounded(left.Quo(left, right))
		default:
			left, err = bounded(remainder(left, right))
		}
	}
	return nil, err
}

// remainder has the sign of left: -7 % 3 is -1.
func remainder(left, right *big.Rat) *big.Rat {
	quotient := new(big.Rat).Quo(left, right)
	whole := new(big.Rat).SetInt(new(big.Int).Quo(quotient.Num(), quotient.Denom()))
	return left.Sub(left, whole.Mul(whole, right))
}

func (p *parser) sign() (*big.Rat, error) {
	if p.depth++; p.depth > maxDepth {
		return nil, errDepth
	}
	defer func() { p.depth-- }()
	switch p.peek() {
	case '-':
		p.at++
		value, err := p.sign()
		if err != nil {
			return nil, err
		}
		return value.Neg(value), nil
	case '+':
		p.at++
		return p.sign()
	default:
		return p.power()
	}
}

func (p *parser) power() (*big.Rat, error) {
	base, err := p.atom()
	if err != nil || p.peek() != '^' {
		return base, err
	}
	p.at++
	exponent, err := p.sign()
	if err != nil {
		return nil, err
	}
	return raise(base, exponent)
}

func raise(base, exponent *big.Rat) (*big.Rat, error) {
	if !exponent.IsInt() {
		return nil, errors.New("power of a fraction")
	}
	if base.Sign() == 0 && exponent.Sign() < 0 {
		return nil, errDivision
	}
	// The size of the result is checked before it is computed, because it might not fit into memory.
	size := big.NewInt(int64(max(base.Num().BitLen(), base.Denom().BitLen()) - 1))
	if size.Mul(size, new(big.Int).Abs(exponent.Num())).Cmp(big.NewInt(maxBits)) > 0 {
		return nil, errTooLarge
	}
	n := new(big.Int).Abs(exponent.Num())
	value := new(big.Rat).SetFrac(new(big.Int).Exp(base.Num(), n, nil), new(big.Int).Exp(base.Denom(), n, nil))
	if exponent.Sign() < 0 {
		value.Inv(value)
	}
	return bounded(value)
}

func (p *parser) atom() (*big.Rat, error) {
	c := p.peek()
	switch {
	case c == '(':
		p.at++
		value, err := p.sum()
		if err != nil {
			return nil, err
		}
		if p.peek() != ')' {
			return nil, fmt.Errorf("no closing parenthesis at %d", p.at)
		}
		p.at++
		return value, nil
	case c == '.' || '0' <= c && c <= '9':
		return p.number()
	case c == 0:
		return nil, errors.New("expression is incomplete")
	default:
		return nil, fmt.Errorf("unexpected %q at %d", c, p.at)
	}
}

func (p *parser) number() (*big.Rat, error) {
	begin := p.at
	for p.at < len(p.text) && (p.text[p.at] == '.' || '0' <= p.text[p.at] && p.text[p.at] <= '9') {
		p.at++
	}
	value, ok := new(big.Rat).SetString(p.text[begin:p.at])
	if !ok {
		return nil, fmt.Errorf("%q is not a number", p.text[begin:p.at])
	}
	return bounded(value)
}

func bounded(v *big.Rat) (*big.Rat, error) {
	if v.Num().BitLen() > maxBits || v.Denom().BitLen() > maxBits {
		return nil, errTooLarge
	}
	return v, nil
}
