package topics

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/go-json-experiment/json/jsontext"
)

// cursor reads one JSON value from start to end, in a single validating pass. The Raw values that it returns alias raw,
// the strings do not.
type cursor struct {
	dec *jsontext.Decoder
	in  bytes.Buffer // the input of dec: raw
	raw []byte
	// texts allocates the strings that the cursor returns.
	texts texts
	// lenient accepts strings that are not UTF-8, and skips values token by token, which locates syntax errors exactly.
	lenient bool
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

// object reads an object and calls member for each name; member reads the value. An ErrType is wrapped with the name, so
// member may return it only for the declared names: other names are payload, which no error may quote.
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

// array reads an array or null and calls element for each element; element reads it. If start is not nil, it is set to the
// offset of the opening bracket.
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
	return unquoted(v), nil
}

// unquoted returns the text of a JSON string. If the string has no escapes, the result aliases v.
func unquoted(v []byte) []byte {
	if bytes.IndexByte(v, '\\') < 0 {
		return v[1 : len(v)-1]
	}
	// The error only reports lone surrogates, which were replaced.
	text, _ := jsontext.AppendUnquote(nil, v)
	return text
}

func (c *cursor) token() (jsontext.Token, error) {
	t, err := c.dec.ReadToken()
	if err != nil {
		return t, c.failed()
	}
	return t, nil
}

// skip skips a value. SkipValue goes token by token and locates syntax errors exactly; ReadValue is faster.
func (c *cursor) skip() (err error) {
	if c.lenient {
		err = c.dec.SkipValue()
	} else {
		_, err = c.dec.ReadValue()
	}
	if err != nil {
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

// failed replaces the decoder's error, which quotes the record.
func (c *cursor) failed() error { return syntax(c.dec.InputOffset()) }
