package topics

import (
	"bytes"
	"errors"
	"fmt"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/turntable-streams/turntable/codec"
)

// cursor reads one JSON value front to back, in a single validating pass. What it hands out aliases raw.
type cursor struct {
	dec *jsontext.Decoder
	raw []byte
}

// read runs body over the first value of raw and checks that it is UTF-8 and nests no deeper than depth. What follows
// the value is not looked at.
func read(raw []byte, depth int, body func(*cursor) error) error {
	if len(raw) == 0 {
		return ErrEmpty
	}
	// Lone surrogate escapes are common (a text cut in the middle of an emoji) and Java takes them, so the decoder is
	// told to let them pass; bytes that are no UTF-8 are found below.
	c := &cursor{raw: raw, dec: jsontext.NewDecoder(bytes.NewBuffer(raw),
		jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))}
	err := body(c)
	value := raw[:c.dec.InputOffset()]
	if errors.Is(err, ErrSyntax) {
		value = raw
	}
	switch {
	case !utf8.Valid(value):
		return ErrUTF8
	case codec.Deeper(value, depth):
		return ErrDepth
	}
	return err
}

// record reads a top-level object.
func (c *cursor) record(member func(name []byte) error) error {
	if c.dec.PeekKind() == 'n' {
		if _, err := c.token(); err != nil {
			return err
		}
		return ErrNull
	}
	return c.object(member)
}

// object reads an object and calls member for each name; member reads the value. Errors about types are wrapped with
// the name: member must raise them for names of its own only, since names are payload too.
func (c *cursor) object(member func(name []byte) error) error {
	if k := c.dec.PeekKind(); k != '{' && k != 0 {
		return mismatch(k, "object")
	}
	if _, err := c.token(); err != nil {
		return err
	}
	for c.dec.PeekKind() == '"' {
		name, err := c.name()
		if err != nil {
			return err
		}
		if err := member(name); err != nil {
			if errors.Is(err, ErrType) {
				return fmt.Errorf("field %s: %w", name, err)
			}
			return err
		}
	}
	_, err := c.token()
	return err
}

// array reads an array, or a null, and calls element before each element; element reads it. Where start is not nil, it
// is set to the offset of the opening bracket.
func (c *cursor) array(element func() error, start *int64) (null bool, err error) {
	switch k := c.dec.PeekKind(); k {
	case 'n':
		_, err := c.token()
		return true, err
	case '[', 0:
	default:
		return false, mismatch(k, "array")
	}
	if _, err := c.token(); err != nil {
		return false, err
	}
	if start != nil {
		*start = c.dec.InputOffset() - 1
	}
	for i := 0; c.dec.PeekKind() != ']'; i++ {
		if err := element(); err != nil {
			if errors.Is(err, ErrType) {
				return false, fmt.Errorf("element %d: %w", i, err)
			}
			return false, err
		}
	}
	_, err = c.token()
	return false, err
}

func (c *cursor) name() ([]byte, error) {
	v, err := c.dec.ReadValue()
	if err != nil {
		return nil, c.failed()
	}
	if bytes.IndexByte(v, '\\') < 0 {
		return v[1 : len(v)-1], nil
	}
	// The error reports replaced surrogates, which no name of ours has.
	name, _ := jsontext.AppendUnquote(nil, v)
	return name, nil
}

func (c *cursor) token() (jsontext.Token, error) {
	t, err := c.dec.ReadToken()
	if err != nil {
		return t, c.failed()
	}
	return t, nil
}

func (c *cursor) skip() error {
	if err := c.dec.SkipValue(); err != nil {
		return c.failed()
	}
	return nil
}

// value reads any value; nil for null.
func (c *cursor) value() (Raw, error) {
	v, err := c.dec.ReadValue()
	if err != nil {
		return nil, c.failed()
	}
	if v[0] == 'n' {
		return nil, nil
	}
	end := c.dec.InputOffset()
	return Raw(c.raw[end-int64(len(v)) : end : end]), nil
}

// list reads an array whose elements are objects or nulls, without decoding them; nil for null.
func (c *cursor) list() (Raw, error) {
	start := int64(0)
	null, err := c.array(func() error {
		switch k := c.dec.PeekKind(); k {
		case '{', 'n', 0:
			return c.skip()
		default:
			return mismatch(k, "object")
		}
	}, &start)
	if err != nil || null {
		return nil, err
	}
	end := c.dec.InputOffset()
	return Raw(c.raw[start:end:end]), nil
}

// failed stands in for the decoder's error, which quotes the record.
func (c *cursor) failed() error { return syntax(c.dec.InputOffset()) }
