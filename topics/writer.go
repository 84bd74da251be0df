package topics

import (
	"bytes"
	"math"
	"slices"
	"strconv"
	"sync"

	"github.com/go-json-experiment/json/jsontext"
)

// writer appends JSON as FlightDeck's Java services write it: compact, fields in the order of the calls, absent ones as
// null, no escapes beyond those that JSON requires.
type writer struct {
	b []byte
	// draft is a reused buffer for small records. They are copied from it once their size is known.
	draft []byte
	// large reports that the record is written to a buffer of its own instead of draft.
	large bool
}

// largest is the largest draft that is kept, in bytes. For larger records, estimating the size is cheaper than copying.
const largest = 4 << 10

var writers = sync.Pool{New: func() any { return &writer{draft: make([]byte, 0, 1<<10)} }}

// encode returns the bytes that write appends for v.
func encode[T any](v T, write func(*writer, T)) []byte {
	w := writers.Get().(*writer)
	w.b = w.draft
	write(w, v)
	record := w.b
	if !w.large {
		record = append([]byte(nil), w.b...) // nothing stays nil
	}
	// A record without an estimate may have made the draft larger than the limit.
	if !w.large && cap(w.b) <= 2*largest {
		w.draft = w.b[:0]
	}
	w.b, w.large = nil, false
	writers.Put(w)
	return record
}

// grow makes room for n bytes and the small fields beside them.
func (w *writer) grow(n int) {
	switch {
	case w.large:
		w.b = slices.Grow(w.b, n+512)
	case n > largest:
		w.b = append(make([]byte, 0, len(w.b)+n+512), w.b...)
		w.large = true
	}
}

func (w *writer) open()  { w.next(); w.b = append(w.b, '{') }
func (w *writer) close() { w.b = append(w.b, '}') }

// next writes a comma unless the element is the first one: no complete value ends in an opening bracket.
func (w *writer) next() {
	if n := len(w.b); n > 0 && w.b[n-1] != '{' && w.b[n-1] != '[' && w.b[n-1] != ':' {
		w.b = append(w.b, ',')
	}
}

func (w *writer) name(name string) {
	w.next()
	w.b = append(append(append(w.b, '"'), name...), '"', ':')
}

func (w *writer) word(name, v string) {
	w.name(name)
	w.b = appendText(w.b, v)
}

func (w *writer) text(name string, v *string) {
	w.name(name)
	if v == nil {
		w.b = append(w.b, "null"...)
		return
	}
	w.b = appendText(w.b, *v)
}

func (w *writer) raw(name string, v Raw) {
	w.name(name)
	w.b = appendRaw(w.b, v)
}

func (w *writer) integer(name string, v int64) {
	w.name(name)
	w.b = strconv.AppendInt(w.b, v, 10)
}

func (w *writer) boolean(name string, v bool) {
	w.name(name)
	w.b = strconv.AppendBool(w.b, v)
}

func (w *writer) double(name string, v *float64) {
	w.name(name)
	if v == nil {
		w.b = append(w.b, "null"...)
		return
	}
	w.b = appendDouble(w.b, *v)
}

func writeList[T any](w *writer, name string, list []T, write func(*writer, T)) {
	w.name(name)
	w.b = append(w.b, '[')
	for _, v := range list {
		write(w, v)
	}
	w.b = append(w.b, ']')
}

// appendText never fails: invalid UTF-8 becomes U+FFFD, because a record that cannot be written stops its processor.
func appendText(b []byte, s string) []byte {
	b, _ = jsontext.AppendQuote(b, s)
	return b
}

func appendRaw(b []byte, v Raw) []byte {
	if v == nil {
		return append(b, "null"...)
	}
	return append(b, v...)
}

// appendDouble writes the format of Java's Double.toString: decimal notation with a point from 1e-3 up to 1e7, else one
// digit, a point and an exponent. NaN and infinity have no JSON form and are written as null.
func appendDouble(b []byte, v float64) []byte {
	abs := math.Abs(v)
	switch {
	case math.IsNaN(v) || math.IsInf(v, 0):
		return append(b, "null"...)
	case abs == 0 || abs >= 1e-3 && abs < 1e7:
		start := len(b)
		b = strconv.AppendFloat(b, v, 'f', -1, 64)
		if bytes.IndexByte(b[start:], '.') < 0 {
			b = append(b, ".0"...)
		}
		return b
	}
	var scratch [32]byte
	mantissa, exponent, _ := bytes.Cut(strconv.AppendFloat(scratch[:0], v, 'e', -1, 64), []byte{'e'})
	b = append(b, mantissa...)
	if bytes.IndexByte(mantissa, '.') < 0 {
		b = append(b, ".0"...)
	}
	b = append(b, 'E')
	if exponent[0] == '-' {
		b = append(b, '-')
	}
	return append(b, bytes.TrimLeft(exponent[1:], "0")...)
}
