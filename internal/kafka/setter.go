package kafka

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
)

// text stores a value without trimming it: blanks may belong to a password.
func text(field func(*pass) *string) setter {
	return func(p *pass, value string) error {
		*field(p) = value
		return nil
	}
}

// number accepts an integer from low to the largest of 32 bits, as Java's int.
func number(low int64, set func(*pass, int)) setter {
	return func(p *pass, value string) error {
		n, err := strconv.ParseInt(strings.TrimSpace(value), 10, 64)
		if err != nil || n < low || n > math.MaxInt32 {
			return fmt.Errorf("%w: want a whole number from %d to %d", ErrValue, low, math.MaxInt32)
		}
		set(p, int(n))
		return nil
	}
}

func milliseconds(low int64, set func(*pass, time.Duration)) setter {
	return number(low, func(p *pass, n int) { set(p, time.Duration(n)*time.Millisecond) })
}

func boolean(set func(*pass, bool)) setter {
	return oneOf(map[string]func(*pass){
		"true":  func(p *pass) { set(p, true) },
		"false": func(p *pass) { set(p, false) },
	})
}

// oneOf accepts one of a few words, in any case.
func oneOf(words map[string]func(*pass)) setter {
	return func(p *pass, value string) error {
		set, ok := words[strings.ToLower(strings.TrimSpace(value))]
		if !ok {
			return fmt.Errorf("%w: want one of %s", ErrValue, strings.Join(slices.Sorted(maps.Keys(words)), ", "))
		}
		set(p)
		return nil
	}
}

// only accepts the values that are in effect anyway and refuses all others for the reason given.
func only(reason string, accepted ...string) setter {
	return func(_ *pass, value string) error {
		if slices.ContainsFunc(accepted, func(a string) bool { return strings.EqualFold(a, strings.TrimSpace(value)) }) {
			return nil
		}
		return fmt.Errorf("%w: %s; want %s", ErrRefused, reason, strings.Join(accepted, " or "))
	}
}
