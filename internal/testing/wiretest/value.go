package wiretest

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"
)

// digest is a hash that stands for bytes which the oracle does not keep.
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
	errNotObject = errors.New("wiretest: value is not an object")
	errNotArray  = errors.New("wiretest: value is not an array")
	errNotJSON   = errors.New("wiretest: value is not JSON")
	errUTF8      = errors.New("wiretest: value is not UTF-8")
)

// checked returns an error for bytes that are not a JSON value in UTF-8. The functions below read checked values and
// parts of them.
func checked(raw []byte) error {
	switch {
	case !utf8.Valid(raw):
		return errUTF8
	case !json.Valid(raw):
		return errNotJSON
	default:
		return nil
	}
}

// members reads an object of a checked value without reading its values.
func members(raw []byte) ([]member, error) {
	var out []member
	err := parts(raw, '{', errNotObject, func(part []byte) {
		end := skipValue(part, 0)
		name := string(part[1 : end-1])
		if strings.ContainsRune(name, '\\') {
			_ = json.Unmarshal(part[:end], &name)
		}
		value := bytes.TrimLeft(part[end:], " \t\r\n")
		out = append(out, member{name: name, raw: trimmed(value[1:])}) // after the colon
	})
	return out, err
}

// elements reads an array of a checked value without reading its elements.
func elements(raw []byte) ([]json.RawMessage, error) {
	var out []json.RawMessage
	err := parts(raw, '[', errNotArray, func(part []byte) { out = append(out, part) })
	return out, err
}

func trimmed(b []byte) []byte { return bytes.Trim(b, " \t\r\n") }

// parts calls each with the parts between the commas of an object or array. encoding/json has already checked the value,
// so that counting brackets is enough.
func parts(raw []byte, open byte, otherwise error, each func([]byte)) error {
	raw = trimmed(raw)
	if len(raw) == 0 || raw[0] != open {
		return otherwise
	}
	inner := trimmed(raw[1 : len(raw)-1])
	for start := 0; start < len(inner); {
		end := start
		for end < len(inner) && inner[end] != ',' {
			end = skipValue(inner, end)
		}
		each(trimmed(inner[start:end]))
		start = end + 1
	}
	return nil
}

// skipValue is where the string, object, array or other token at i of a valid value ends.
func skipValue(b []byte, i int) int {
	depth := 0
	for ; i < len(b); i++ {
		switch b[i] {
		case '"':
			for i++; b[i] != '"'; i++ {
				if b[i] == '\\' {
					i++
				}
			}
		case '{', '[':
			depth++
		case '}', ']':
			depth--
		}
		if depth == 0 {
			return i + 1
		}
	}
	return i
}

// leading returns the first JSON value of an input record. Java readers ignore text after it.
func leading(raw []byte) []byte {
	if json.Valid(raw) {
		return raw
	}
	var first json.RawMessage
	if json.NewDecoder(bytes.NewReader(raw)).Decode(&first) != nil {
		return raw
	}
	return first
}

// object is an object by name: of names that occur twice the later one counts, as in Java.
type object map[string]json.RawMessage

// objectOf reads a whole record.
func objectOf(raw []byte) (object, error) {
	if err := checked(raw); err != nil {
		return nil, err
	}
	return objectIn(raw)
}

// objectIn reads an object of a checked value.
func objectIn(raw []byte) (object, error) {
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

// compact returns raw without blanks between tokens. Bytes that are not JSON are returned unchanged.
func compact(raw []byte) []byte {
	var b bytes.Buffer
	if json.Compact(&b, raw) != nil {
		return raw
	}
	return b.Bytes()
}

// untimed returns raw, compact, with every time replaced by 0: times may differ when the same record is written again
// after a crash.
func untimed(raw []byte) []byte {
	var b bytes.Buffer
	if checked(raw) != nil || blankTimes(&b, raw, 0) != nil {
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
