package topics

import (
	"bytes"
	"errors"
	"sync"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/turntable-streams/turntable/codec"
)

// read calls body with a cursor at the first value of raw, and checks that the value is UTF-8 and nested no deeper than
// depth. Text after the value is ignored. body may be called twice and must reset its results at the start.
//
// Nearly every record is strict JSON, and the decoder checks its UTF-8 as it reads. A record that the decoder rejects is
// read again leniently, because lone surrogate escapes are common (a text cut in the middle of an emoji) and Java accepts
// them. The lenient decoder also accepts invalid UTF-8, so read checks for it.
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
	// After a panic the cursor is not reused.
	c.reset()
	cursors.Put(c)
	return end, err
}

// readLeniently also returns the bytes whose UTF-8 and depth the caller must check: those that body has read, or all of
// raw if it is not JSON.
func readLeniently(raw []byte, body func(*cursor) error) (value []byte, err error) {
	c := &cursor{raw: raw, in: *bytes.NewBuffer(raw), lenient: true}
	c.dec = jsontext.NewDecoder(&c.in, jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	if err = body(c); errors.Is(err, ErrSyntax) {
		return raw, err
	}
	return raw[:c.dec.InputOffset()], err
}

// cursors reuses strict cursors, because most of the memory that decoding needs belongs to the decoder.
var cursors = sync.Pool{New: func() any {
	c := &cursor{}
	c.dec = jsontext.NewDecoder(&c.in, jsontext.AllowDuplicateNames(true))
	return c
}}

// reset releases the record and the memory that its strings share. The decoder reads from c.in only when it is asked for
// a token, so the next record can be put there later.
func (c *cursor) reset() {
	c.raw, c.in, c.texts = nil, bytes.Buffer{}, texts{}
	c.dec.Reset(&c.in, jsontext.AllowDuplicateNames(true))
}
