package topics

import (
	"bytes"
	"errors"
	"sync"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/turntable-streams/turntable/codec"
)

// read runs body over the first value of raw and checks that it is UTF-8 and nests no deeper than depth. What follows
// the value is not looked at. Body may run twice, and begins from nothing each time.
//
// Nearly every record is strict JSON, of which the decoder checks the UTF-8 while it reads. What it refuses is read once
// more: lone surrogate escapes are common (a text cut in the middle of an emoji) and Java takes them, so the decoder is
// then told to let everything pass, and bytes that are no UTF-8 are found here.
func read(raw []byte, depth int, body func(*cursor) error) error {
	if len(raw) == 0 {
		return ErrEmpty
	}
	end, err := readStrictly(raw, body)
	value := raw[:end]
	if errors.Is(err, ErrSyntax) {
		if value, err = readLeniently(raw, body); !utf8.Valid(value) {
			return ErrUTF8
		}
	}
	if codec.Deeper(value, depth) {
		return ErrDepth
	}
	return err
}

func readStrictly(raw []byte, body func(*cursor) error) (end int64, err error) {
	c := cursors.Get().(*cursor)
	c.raw, c.in = raw, *bytes.NewBuffer(raw)
	err = body(c)
	end = c.dec.InputOffset()
	// After a panic it is not given back.
	c.forget()
	cursors.Put(c)
	return end, err
}

// readLeniently returns what has to be judged as well: what body has read, or all where that is no JSON.
func readLeniently(raw []byte, body func(*cursor) error) (value []byte, err error) {
	c := &cursor{raw: raw, in: *bytes.NewBuffer(raw), lenient: true}
	c.dec = jsontext.NewDecoder(&c.in, jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	if err = body(c); errors.Is(err, ErrSyntax) {
		return raw, err
	}
	return raw[:c.dec.InputOffset()], err
}

// cursors keeps strict cursors for the next record: most of the memory that a record is read with is the decoder's own.
var cursors = sync.Pool{New: func() any {
	c := &cursor{}
	c.dec = jsontext.NewDecoder(&c.in, jsontext.AllowDuplicateNames(true))
	return c
}}

// forget lets go of the record, and of the memory that its texts share. The decoder is ready for the next one: it looks
// for its input when it is first asked for a token.
func (c *cursor) forget() {
	c.raw, c.in, c.texts = nil, bytes.Buffer{}, texts{}
	c.dec.Reset(&c.in, jsontext.AllowDuplicateNames(true))
}
