package topics

import (
	"bytes"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// This file converts scalars to their declared type as the Java services' JSON reader (Jackson) does.

// text reads a string, or the literal of a number or a boolean; nil for null.
func (c *cursor) text() (*string, error) {
	k, b, err := c.literal("string")
	if err != nil || k == 'n' {
		return nil, err
	}
	return c.texts.pointer(b, c.left()), nil
}

// word is like text, but returns the empty string for null.
func (c *cursor) word() (string, error) {
	k, b, err := c.literal("string")
	if err != nil || k == 'n' {
		return "", err
	}
	return c.texts.word(b, c.left()), nil
}

// left returns the number of unread bytes.
func (c *cursor) left() int { return len(c.raw) - int(c.dec.InputOffset()) }

// integer reads an integer of the given number of bits: a number, truncated at its decimal point, or a string that holds
// an integer; 0 for null and a blank string.
func (c *cursor) integer(bits int) (int64, error) {
	k, b, err := c.scalar("integer")
	if err != nil || len(b) == 0 {
		return 0, err
	}
	s := string(b)
	if k == 't' || k == 'f' {
		return 0, mismatch(k, "integer")
	}
	n, err := strconv.ParseInt(s, 10, bits)
	if err == nil {
		return n, nil
	}
	if k == '0' && strings.ContainsAny(s, ".eE") {
		f, err := strconv.ParseFloat(s, 64)
		f = math.Trunc(f)
		// The upper bound itself is out of range; the lower one is not.
		bound := math.Ldexp(1, bits-1)
		if err != nil || f >= bound || f < -bound {
			return 0, fmt.Errorf("%w: integer out of range", ErrType)
		}
		return int64(f), nil
	}
	return 0, fmt.Errorf("%w: got %s that is not a %d-bit integer", ErrType, kindName(k), bits)
}

// double reads a number, or a string that holds one; nil for null, for a blank string and for a value that is not
// finite, because NaN or infinity as a cost would make every later sum meaningless.
func (c *cursor) double() (*float64, error) {
	k, b, err := c.scalar("number")
	if err != nil || len(b) == 0 {
		return nil, err
	}
	s := string(b)
	switch {
	case k == 't' || k == 'f':
		return nil, mismatch(k, "number")
	case s == "NaN", s == "Infinity", s == "-Infinity", s == "INF", s == "-INF":
		return nil, nil
	case k == '"' && strings.Trim(s, "0123456789+-.eE") != "":
		return nil, fmt.Errorf("%w: got text that is not a number", ErrType)
	}
	f, err := strconv.ParseFloat(s, 64)
	if math.IsInf(f, 0) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("%w: got text that is not a number", ErrType)
	}
	return &f, nil
}

// boolean reads a boolean, a string that holds one, or a number (true unless it is zero); false for null and a blank
// string.
func (c *cursor) boolean() (bool, error) {
	k, b, err := c.scalar("boolean")
	if err != nil {
		return false, err
	}
	if k == '0' {
		f, _ := strconv.ParseFloat(string(b), 64)
		return f != 0, nil
	}
	switch string(b) {
	case "true", "True", "TRUE":
		return true, nil
	case "false", "False", "FALSE", "":
		return false, nil
	}
	return false, fmt.Errorf("%w: got text that is not a boolean", ErrType)
}

// scalar reads a scalar's literal, trimmed; empty for null, for a blank string and for the string "null".
func (c *cursor) scalar(want string) (jsontext.Kind, []byte, error) {
	k, b, err := c.literal(want)
	if b = bytes.TrimSpace(b); string(b) == "null" {
		b = nil
	}
	return k, b, err
}

// literal reads a scalar: the text of a string, or the JSON of any other. The result may alias the record.
func (c *cursor) literal(want string) (jsontext.Kind, []byte, error) {
	k := c.dec.PeekKind()
	if k == '{' || k == '[' {
		return k, nil, mismatch(k, want)
	}
	v, err := c.dec.ReadValue()
	if err != nil {
		return k, nil, c.failed()
	}
	if k == '"' {
		v = unquoted(v)
	}
	return k, v, nil
}

// document reads an object without decoding it; nil for null.
func (c *cursor) document() (Raw, error) {
	if k := c.dec.PeekKind(); k != '{' && k != 'n' && k != 0 {
		return nil, mismatch(k, "object")
	}
	return c.value()
}
