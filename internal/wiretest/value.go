package wiretest

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"
)

// digest stands for bytes the oracle has seen and does not keep.
type digest [16]byte

func digestOf(parts ...[]byte) digest {
	h := sha256.New()
	var n [8]byte
	for _, p := range parts {
		binary.BigEndian.PutUint64(n[:], uint64(len(p)))
		h.Write(n[:])
		h.Write(p)
	}
	return digest(h.Sum(nil)[:16])
}

// member is one name and value of an object, in the order of the document. The value has no blanks around it.
type member struct {
	name string
	raw  json.RawMessage
}

var (
	errNotObject = errors.New("wiretest: value is no object")
	errNotArray  = errors.New("wiretest: value is no array")
	errTrailing  = errors.New("wiretest: text after the value")
	errUTF8      = errors.New("wiretest: value is not UTF-8")
)

// members reads an object without reading its values. It refuses invalid UTF-8 and text after the object.
func members(raw []byte) ([]member, error) {
	if !utf8.Valid(raw) {
		return nil, errUTF8
	}
	dec := json.NewDecoder(bytes.NewReader(raw))
	if err := opening(dec, '{', errNotObject); err != nil {
		return nil, err
	}
	var out []member
	for dec.More() {
		tok, err := dec.Token()
		if err != nil {
			return nil, fmt.Errorf("wiretest: name: %w", err)
		}
		name, ok := tok.(string)
		if !ok {
			return nil, errNotObject
		}
		var v json.RawMessage
		if err := dec.Decode(&v); err != nil {
			return nil, fmt.Errorf("wiretest: value of a member: %w", err)
		}
		out = append(out, member{name: name, raw: v})
	}
	return out, closing(dec)
}

// elements reads an array without reading its elements.
func elements(raw []byte) ([]json.RawMessage, error) {
	dec := json.NewDecoder(bytes.NewReader(raw))
	if err := opening(dec, '[', errNotArray); err != nil {
		return nil, err
	}
	var out []json.RawMessage
	for dec.More() {
		var v json.RawMessage
		if err := dec.Decode(&v); err != nil {
			return nil, fmt.Errorf("wiretest: element: %w", err)
		}
		out = append(out, v)
	}
	return out, closing(dec)
}

func opening(dec *json.Decoder, want json.Delim, otherwise error) error {
	tok, err := dec.Token()
	if err != nil {
		return fmt.Errorf("wiretest: value: %w", err)
	}
	if tok != want {
		return otherwise
	}
	return nil
}

func closing(dec *json.Decoder) error {
	if _, err := dec.Token(); err != nil {
		return fmt.Errorf("wiretest: end of value: %w", err)
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return errTrailing
	}
	return nil
}

// object is an object by name: of names that occur twice the later one counts, as in Java.
type object map[string]json.RawMessage

func objectOf(raw []byte) (object, error) {
	ms, err := members(raw)
	if err != nil {
		return nil, err
	}
	o := make(object, len(ms))
	for _, m := range ms {
		o[m.name] = m.raw
	}
	return o, nil
}

// raw is the value under the first of the names that is there and not null, else nil.
func (o object) raw(names ...string) json.RawMessage {
	for _, n := range names {
		if v := o[n]; len(v) > 0 && !isNull(v) {
			return v
		}
	}
	return nil
}

// text is the string under the first of the names, else nil. A value of another type is no string.
func (o object) text(names ...string) *string {
	v := o.raw(names...)
	if len(v) == 0 || v[0] != '"' {
		return nil
	}
	var s string
	if json.Unmarshal(v, &s) != nil {
		return nil
	}
	return &s
}

// number is the number under the first of the names, else nil.
func (o object) number(names ...string) *float64 {
	v := o.raw(names...)
	var f float64
	if len(v) == 0 || json.Unmarshal(v, &f) != nil {
		return nil
	}
	return &f
}

// list is the array under the first of the names, or nothing.
func (o object) list(names ...string) []json.RawMessage {
	es, err := elements(o.raw(names...))
	if err != nil {
		return nil
	}
	return es
}

func isNull(raw []byte) bool { return len(raw) == 0 || string(raw) == "null" }

// compact is raw without blanks between tokens; what is no JSON stays as it is.
func compact(raw []byte) []byte {
	var b bytes.Buffer
	if json.Compact(&b, raw) != nil {
		return raw
	}
	return b.Bytes()
}

// untimed is raw, compact, with every member that tells a time blanked: what may differ between two writings of the
// same record after a crash.
func untimed(raw []byte) []byte {
	var b bytes.Buffer
	if err := blankTimes(&b, raw, 0); err != nil {
		return raw
	}
	return b.Bytes()
}

// deepest is how far our own fields nest (enriched: latest_input, metadata, tool_results, element, field), and more.
const deepest = 8

func blankTimes(b *bytes.Buffer, raw []byte, depth int) error {
	switch {
	case depth > deepest:
		b.Write(compact(raw))
	case len(raw) > 0 && raw[0] == '{':
		ms, err := members(raw)
		if err != nil {
			return err
		}
		b.WriteByte('{')
		for _, m := range ms {
			fmt.Fprintf(b, "%q:", m.name)
			if m.name == "timestamp" || m.name == "deadline_ms" {
				b.WriteByte('0')
			} else if err := blankTimes(b, m.raw, depth+1); err != nil {
				return err
			}
			b.WriteByte(',')
		}
		b.WriteByte('}')
	case len(raw) > 0 && raw[0] == '[':
		es, err := elements(raw)
		if err != nil {
			return err
		}
		b.WriteByte('[')
		for _, e := range es {
			if err := blankTimes(b, e, depth+1); err != nil {
				return err
			}
			b.WriteByte(',')
		}
		b.WriteByte(']')
	default:
		b.Write(raw)
	}
	return nil
}

func blank(s *string) bool { return s == nil || strings.TrimSpace(*s) == "" }

func same(a, b *string) bool {
	if a == nil || b == nil {
		return a == b
	}
	return *a == *b
}

// quote is a JSON string that escapes no more than it must: encoding/json's default also escapes <, > and &.
func quote(s string) string {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if enc.Encode(s) != nil {
		return `""`
	}
	return strings.TrimSuffix(b.String(), "\n")
}
